/** Headless Chromium with WebGL in software, and what the tests ask of the page. */
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--use-gl=angle",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
  "--ignore-gpu-blocklist",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const SHOTS = process.env.ALICE_SHOTS ?? join(tmpdir(), "alice-shots");

/** `aloud`: what it plays goes to the sound server. */
export async function openBrowser(more = [], aloud = false) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [...FLAGS, ...more],
    ...(aloud ? { ignoreDefaultArgs: ["--mute-audio"] } : {}),
  });
}

/** Opens the page and waits for the avatar. `problems` fills with page errors. */
export async function openPage(browser, url, { width = 960, height = 640 } = {}) {
  const page = await browser.newPage({ viewport: { width, height } });
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/ERR_CONNECTION|ERR_INCOMPLETE|Failed to load resource/.test(message.text())) page.problems.push(message.text());
  });
  await page.goto(url);
  await page.waitForFunction(() => window.__alice?.snapshot.frames > 2, null, { timeout: 60_000 });
  return page;
}

export const look = (page) => page.evaluate(() => window.__alice.snapshot);

/** Begins to keep what the face shows, every frame. */
export const record = (page) =>
  page.evaluate(() => {
    window.__seen = [];
    const keep = () => {
      window.__seen.push(window.__alice.snapshot);
      window.__recording = requestAnimationFrame(keep);
    };
    cancelAnimationFrame(window.__recording);
    keep();
  });

export const recorded = (page) =>
  page.evaluate(() => {
    cancelAnimationFrame(window.__recording);
    return window.__seen;
  });

export async function shot(page, name) {
  mkdirSync(SHOTS, { recursive: true });
  const path = join(SHOTS, `${name}.png`);
  await page.screenshot({ path });
  return path;
}

export const openness = (seen) => Math.max(...Object.values(seen.mouth));

/** How many different colours the middle of the canvas holds; an empty canvas has one. */
export const colours = (page) =>
  page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(done));
    const stage = document.querySelector("#stage");
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [160, 120];
    const seen = new Set();
    // The drawing buffer is only whole inside a frame, so the copy is taken right after one.
    for (let tries = 0; tries < 20 && seen.size < 20; tries++) {
      await new Promise((done) => requestAnimationFrame(done));
      const pen = copy.getContext("2d", { willReadFrequently: true });
      pen.drawImage(stage, 0, 0, copy.width, copy.height);
      const { data } = pen.getImageData(0, 0, copy.width, copy.height);
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    return seen.size;
  });

export async function until(what, check, timeoutMs = 15_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not seen within ${timeoutMs} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
