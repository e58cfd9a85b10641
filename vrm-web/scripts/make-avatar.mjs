/**
 * Makes Alice's own avatar, `assets/alice.vrm`, from nothing but numbers. The same code gives the
 * same bytes; `--check` says whether the file is what the code makes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { avatar, parts } from "./avatar/avatar.mjs";

const OUT = fileURLToPath(new URL("../../assets/alice.vrm", import.meta.url));

const meshes = parts();
const file = avatar(meshes);
if (process.argv.includes("--check")) {
  const same = readFileSync(OUT).equals(file);
  console.log(same ? "assets/alice.vrm is what the script makes" : "assets/alice.vrm differs: run `npm run avatar`");
  process.exitCode = same ? 0 : 1;
} else {
  writeFileSync(OUT, file);
  const triangles = meshes.map(({ name, parts: list }) => [name, list.reduce((sum, part) => sum + part.indices.length / 3, 0)]);
  const total = triangles.reduce((sum, [, count]) => sum + count, 0);
  console.log(`assets/alice.vrm: ${file.length} bytes, ${total} triangles (${triangles.map(([name, count]) => `${name} ${count}`).join(", ")})`);
}
