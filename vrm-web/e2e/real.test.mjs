/**
 * The page against Alice herself, with her embedded models: `ALICE_BIN`, else `target/release/alice`
 * (or under `CARGO_TARGET_DIR`). Without a programme the tests are skipped and say so.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { skip, startAlice as start, stopAlice } from "./alice.mjs";
import { colours, look, openBrowser, openness, openPage, record, recorded, shot, until } from "./browser.mjs";

/** A model on a busy machine may take long to begin. */
const REPLY_MS = 90_000;
const QUESTION = "Tell me a short happy story about a rabbit.";

let browser;
let alice;
let home;

const startAlice = (listen, settings = []) => start(home, listen, ["ears.enabled=false", ...settings]);

before(async () => {
  if (skip) return;
  home = mkdtempSync(join(tmpdir(), "alice-e2e-"));
  alice = await startAlice();
  browser = await openBrowser();
});
after(async () => {
  if (skip) return;
  await browser.close();
  await stopAlice(alice);
  rmSync(home, { recursive: true, force: true });
});

async function withPage(use) {
  const page = await openPage(browser, alice.url);
  try {
    await use(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await fetch(`${alice.url}interrupt`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    await until("silence", async () => (await look(page)).turn === null);
    await page.close();
  }
}

async function ask(page, text) {
  await page.fill("#text", text);
  await page.keyboard.press("Enter");
}

const speaks = (page) => until("she speaks", async () => openness(await look(page)) > 0.1, REPLY_MS);

test("the page loads and the avatar is drawn", { skip }, () =>
  withPage(async (page) => {
    assert.ok((await colours(page)) >= 20);
    assert.equal(openness(await look(page)), 0);
    await shot(page, "real-idle");
  }));

test("a typed message is answered; lips move only with the sound, and the feeling comes with it", { skip }, () =>
  withPage(async (page) => {
    await record(page);
    await ask(page, "I won a prize today and I am so happy!");
    await speaks(page);
    await shot(page, "real-speaking");
    await until("the reply is over", async () => (await look(page)).turn === null, REPLY_MS);
    await page.waitForTimeout(500);
    const seen = await recorded(page);
    let lastSound = -Infinity;
    for (const frame of seen) {
      if (frame.playing) lastSound = frame.at;
      else if (frame.at - lastSound > 200) assert.equal(openness(frame), 0, `open ${frame.at - lastSound} ms after the sound`);
    }
    const first = seen.find((frame) => frame.playing);
    const mood = (frame) => Math.max(...Object.values(frame.moods));
    assert.ok(seen.filter((frame) => frame.at < first.at).every((frame) => mood(frame) === 0), "no feeling before its sound");
    for (const frame of seen.filter((it) => it.playing?.played_ms > 600 && it.feeling.intensity > 0.2 && it.feeling.emotion !== "neutral")) {
      assert.ok(mood(frame) > 0, `${frame.feeling.emotion} shows with its sound`);
    }
    assert.notEqual(await page.locator("#transcript .alice").last().textContent(), "");
  }));

test("stop empties the queue and closes the mouth", { skip }, () =>
  withPage(async (page) => {
    await ask(page, QUESTION);
    await speaks(page);
    await page.keyboard.press("Escape");
    await until("silence", async () => (await look(page)).playing === null);
    const seen = await look(page);
    assert.equal(seen.queue, 0);
    assert.equal(openness(seen), 0);
    await page.waitForTimeout(1_500);
    assert.equal((await look(page)).playing, null);
  }));

test("a reload while she speaks goes on with the reply", { skip }, () =>
  withPage(async (page) => {
    await ask(page, QUESTION);
    await speaks(page);
    await page.reload();
    await page.waitForFunction(() => window.__alice?.snapshot.frames > 2);
    const seen = await look(page);
    assert.ok(seen.playing !== null || seen.turn !== null, "the reply is still there");
    await until("lips move again", async () => openness(await look(page)) > 0.1, REPLY_MS);
  }));

test("a restart of Alice is survived with one EventSource", { skip }, () =>
  withPage(async (page) => {
    const { port } = alice;
    await stopAlice(alice);
    await until("the page notices", async () => (await page.locator("#status-text").textContent()) === "Reconnecting…");
    alice = await startAlice(`127.0.0.1:${port}`);
    await until("it is back", async () => (await page.locator("#status-text").textContent()) !== "Reconnecting…", 30_000);
    const health = await (await fetch(`${alice.url}healthz`)).json();
    assert.equal(health.viewers, 1);
    assert.equal((await look(page)).sources.live, 1);
  }));

test("push-to-talk opens the ears while the button is held", { skip }, async () => {
  await stopAlice(alice);
  alice = await startAlice("127.0.0.1:0", ["ears.mode=push-to-talk"]);
  await withPage(async (page) => {
    const hold = page.locator("#hold");
    assert.equal(await hold.isDisabled(), true, "nobody listens without a microphone");
    // A remote device that hears silence is the microphone.
    await page.evaluate(async (token) => {
      const line = new WebSocket(`ws://${location.host}/audio?token=${token}`);
      await new Promise((opened) => line.addEventListener("open", opened));
      line.send(JSON.stringify({ name: "test", input_rate: 16000, output_rate: 0, echo_cancelled: true }));
      setInterval(() => line.readyState === WebSocket.OPEN && line.send(new Uint8Array(640)), 20);
    }, readFileSync(join(home, "token"), "utf8").trim());
    await until("the microphone is there", async () => !(await hold.isDisabled()));
    const ears = async () => (await look(page)).listen;
    const is = (state) => until(`the ears are ${state}`, async () => (await ears()) === state);
    await is("idle");
    await hold.hover();
    await page.mouse.down();
    await is("listening");
    assert.equal(await hold.getAttribute("aria-pressed"), "true");
    await shot(page, "real-push-to-talk");
    await page.mouse.move(5, 5);
    await page.mouse.up();
    await is("idle");
    await page.keyboard.down("Space");
    await is("listening");
    await page.keyboard.up("Space");
    await is("idle");
  });
});
