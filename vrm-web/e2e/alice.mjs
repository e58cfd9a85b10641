/** Alice herself for the tests: `ALICE_BIN`, else `target/release/alice` (or under `CARGO_TARGET_DIR`). */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
export const BIN = process.env.ALICE_BIN ?? join(target, "release", "alice");
/** Why there is nothing to test; `false`: there is. */
export const skip = existsSync(BIN) ? false : `no programme at ${BIN}: build it, or set ALICE_BIN`;

/** Starts her and waits for the line with her address. */
export async function startAlice(home, listen = "127.0.0.1:0", settings = []) {
  const args = ["run", "--home", home];
  for (const setting of [`server.listen=${listen}`, ...settings]) args.push("--set", setting);
  if (process.env.ALICE_ARGS) args.push(...process.env.ALICE_ARGS.split(" "));
  const child = spawn(BIN, args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((found, failed) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const match = /alice is at (http:\S+)/.exec(text);
      if (match) found(match[1]);
    });
    child.once("exit", (code) => failed(new Error(`alice ended with ${code} before she said her address`)));
  });
  return { child, url, port: new URL(url).port };
}

export async function stopAlice({ child }) {
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGTERM");
  await gone;
}
