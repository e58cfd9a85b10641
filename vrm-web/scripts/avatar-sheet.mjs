/**
 * Draws avatars in headless Chromium with the page's own three.js and three-vrm, its light and its
 * framing: the contact sheet `docs/avatar.jpg`, and any other set of pictures.
 *
 *   node scripts/avatar-sheet.mjs                         docs/avatar.jpg
 *   node scripts/avatar-sheet.mjs SET OUT [MODEL ...]     SET: one of avatar-sheet/sets.mjs
 */
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser } from "../e2e/browser.mjs";
import { SETS } from "./avatar-sheet/sets.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const [set = "sheet", out = resolve(root, "../docs/avatar.jpg"), ...given] = process.argv.slice(2);
const models = given.length > 0 ? given : [resolve(root, "../assets/alice.vrm")];
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html" };

const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  const model = /^\/model\/(\d+)$/.exec(path);
  const file = model ? models[Number(model[1])] : resolve(root, path === "/" ? "scripts/avatar-sheet/page.html" : `.${path}`);
  const data = await readFile(file).catch(() => null);
  response.writeHead(data ? 200 : 404, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  response.end(data ?? "");
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const browser = await openBrowser();
try {
  const page = await browser.newPage();
  page.on("console", (message) => console.log(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.log(`page: ${error}`));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.draw);
  const picture = await page.evaluate((what) => window.draw(what), { ...SETS[set], models: models.length, type: out.endsWith(".png") ? "image/png" : "image/jpeg" });
  await writeFile(out, Buffer.from(picture.split(",")[1], "base64"));
  console.log(`${out}: ${(picture.length * 0.75) | 0} bytes`);
} finally {
  await browser.close();
  server.close();
}
