/**
 * Makes Alice's own avatar, `assets/alice.vrm`, from nothing but numbers. The same code gives the
 * same bytes; `--check` says whether the file is what the code makes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { figure } from "./avatar/figure.mjs";
import { paint } from "./avatar/head.mjs";
import { write } from "./avatar/vrm.mjs";

const OUT = fileURLToPath(new URL("../../assets/alice.vrm", import.meta.url));

const line = 0.0016;
const materials = {
  skin: { color: 0xfde3d2, shade: 0xf2b9a4, outline: line, ink: 0x9c5f4e },
  hair: { color: 0xe9bd72, shade: 0xc58a48, outline: line, ink: 0x7d4d24, rim: 0.06, doubleSided: true },
  hairDark: { color: 0xb67c40, shade: 0xa06a36, doubleSided: true },
  dress: { color: 0x5f9fd0, shade: 0x3f74ab, outline: line, ink: 0x274a70 },
  dressDark: { color: 0x34608f, shade: 0x2c527c },
  white: { color: 0xfffdf8, shade: 0xd3d9ea, outline: line * 0.8, ink: 0x7b86a5, doubleSided: true },
  ribbon: { color: 0x3f6fb0, shade: 0x2d5187, outline: line, ink: 0x203c63 },
  shoe: { color: 0x46526b, shade: 0x2e374c, outline: line, ink: 0x1d2433 },
  blushOuter: { color: 0xfdd9ca, shade: 0xf2b39f },
  blush: { color: 0xfccfc2, shade: 0xf1ac9a },
  blushInner: { color: 0xfbc4ba, shade: 0xf0a596 },
  nose: { color: 0xf0b6a0, shade: 0xe6a58f },
  mouth: { color: 0x8f3440, shade: 0x8f3440 },
  tooth: { color: 0xfff8f2, shade: 0xf3e6e0 },
  tongue: { color: 0xe98383, shade: 0xe07878 },
  lip: { color: 0xb5564f, shade: 0xb5564f },
  eyeWhite: { color: 0xfffcfa, shade: 0xf3eef2 },
  irisRim: { color: 0x1f4a80, shade: 0x1f4a80 },
  iris: { color: 0x3a80c4, shade: 0x3a80c4 },
  irisLight: { color: 0x86c9ee, shade: 0x86c9ee },
  lash: { color: 0x3a2723, shade: 0x3a2723 },
  lashSoft: { color: 0x96685a, shade: 0x96685a },
  brow: { color: 0xa8733c, shade: 0xa06c38 },
  shine: { color: 0xffffff, shade: 0xffffff },
};

const meta = {
  name: "Alice",
  version: "1",
  authors: ["The Alice project"],
  copyrightInformation: "MIT OR Apache-2.0, as the rest of the Alice project",
  licenseUrl: "https://vrm.dev/licenses/1.0/",
  avatarPermission: "everyone",
  commercialUsage: "corporation",
  creditNotation: "unnecessary",
  allowRedistribution: true,
  modification: "allowModificationRedistribution",
};

const painted = paint().map((part) => Object.assign(part, { bones: () => [["head", 1]] }));
const file = write({ parts: figure(), painted, materials, meta });
if (process.argv.includes("--check")) {
  const same = readFileSync(OUT).equals(file);
  console.log(same ? "assets/alice.vrm is what the script makes" : "assets/alice.vrm differs: run `npm run avatar`");
  process.exitCode = same ? 0 : 1;
} else {
  writeFileSync(OUT, file);
  console.log(`assets/alice.vrm: ${file.length} bytes`);
}
