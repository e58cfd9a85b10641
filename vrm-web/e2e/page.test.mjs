/** The page against a server that keeps exact time. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { colours, look, openBrowser, openness, openPage, record, recorded, shot, until } from "./browser.mjs";
import { FakeAlice } from "./fake-server.mjs";

/** Sound that is over must be seen to be over. */
const CLOSED_WITHIN_MS = 200;

let browser;
let alice;
before(async () => {
  browser = await openBrowser();
  alice = await new FakeAlice().start();
});
after(async () => {
  await browser.close();
  await alice.stop();
});

async function withPage(use) {
  const page = await openPage(browser, alice.url);
  try {
    await use(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.close();
  }
}

test("the avatar is drawn, arms down, mouth closed", () =>
  withPage(async (page) => {
    assert.ok((await colours(page)) >= 20);
    assert.equal(openness(await look(page)), 0);
    await shot(page, "page-idle");
    assert.equal(await page.title(), "Alice");
    assert.equal(await page.locator("#mic").getAttribute("aria-label"), "Mute the microphone");
  }));

test("a typed question is answered: lips and feelings move with the sound only", () =>
  withPage(async (page) => {
    await record(page);
    await page.fill("#text", "How are you?");
    await page.keyboard.press("Enter");
    await until("the reply is over", async () => (await look(page)).turn === null && (await page.locator("#transcript .alice:not([data-note=speaking])").count()) > 0);
    await page.waitForTimeout(600);
    const seen = await recorded(page);
    assert.deepEqual(alice.posts.find(([path]) => path === "/chat"), ["/chat", { text: "How are you?" }]);
    assert.equal(await page.locator("#transcript .alice").last().textContent(), "I am so glad to see you! It has been a long day.");

    const speaking = seen.filter((frame) => frame.playing);
    assert.ok(Math.max(...speaking.map(openness)) > 0.5, "the mouth opens");
    let lastSound = -Infinity;
    for (const frame of seen) {
      if (frame.playing) lastSound = frame.at;
      else if (frame.at - lastSound > CLOSED_WITHIN_MS) assert.equal(openness(frame), 0, `open ${frame.at - lastSound} ms after the sound`);
    }
    // A busy machine may draw nothing for a while: only what was drawn since the sentence began can show it.
    const of = (index) => {
      const its = speaking.filter((frame) => frame.playing.segment.index === index);
      return its.filter((frame) => frame.playing.played_ms > 700 && frame.frames >= its[0].frames + 3);
    };
    assert.ok(of(0).length > 0 && of(0).every((frame) => frame.moods.happy > frame.moods.sad), "glad with the first sentence");
    assert.ok(of(1).length > 0 && of(1).every((frame) => frame.moods.sad > frame.moods.happy), "sad with the second");
    assert.ok(seen.filter((frame) => !frame.playing && lastSound > frame.at && frame.at < speaking[0].at).every((frame) => frame.moods.happy === 0), "not before its sound");
    assert.ok(alice.posts.some(([path, body]) => path === "/playback" && body.played_ms >= 300));
  }));

test("a feeling decays to neutral when the reply is over", () =>
  withPage(async (page) => {
    alice.speak("?", [["Hooray!", "happy", 800]]);
    await until("happy", async () => (await look(page)).moods.happy > 0.3);
    await until("neutral", async () => Object.values((await look(page)).moods).every((mood) => mood === 0), 8_000);
  }));

test("Escape stops the reply: the mouth closes and the queue is empty", () =>
  withPage(async (page) => {
    alice.speak("?", [["A long first sentence of several words.", "neutral", 3000], ["And a second one.", "neutral", 3000]]);
    await until("an open mouth", async () => openness(await look(page)) > 0.3);
    await record(page);
    await page.keyboard.press("Escape");
    await until("the interrupt", async () => (await look(page)).playing === null);
    await page.waitForTimeout(300);
    const seen = await recorded(page);
    const silent = seen.filter((frame) => !frame.playing);
    assert.ok(silent.length > 0 && silent.every((frame) => openness(frame) === 0 && frame.queue === 0));
    assert.ok(alice.posts.some(([path]) => path === "/interrupt"));
    assert.equal(await page.locator("#stop").isDisabled(), true);
  }));

test("a reload in the middle of a reply goes on with it", () =>
  withPage(async (page) => {
    const turn = alice.speak("?", [["A sentence that is long enough to be met again.", "sad", 12000]]);
    await until("speaking", async () => (await look(page)).state === "speaking");
    await page.reload();
    await page.waitForFunction(() => window.__alice?.snapshot.frames > 2);
    const seen = await look(page);
    assert.equal(seen.state, "speaking");
    assert.equal(seen.playing.segment.turn, turn);
    assert.ok(seen.playing.played_ms > 200);
    await until("lips move again", async () => openness(await look(page)) > 0.3);
    await until("the feeling is back", async () => (await look(page)).moods.sad > 0.2);
    alice.interrupt();
  }));

test("a restart of the server is survived with one EventSource", () =>
  withPage(async (page) => {
    const { port } = alice;
    alice.speak("?", [["Cut off.", "neutral", 5000]]);
    await until("an open mouth", async () => openness(await look(page)) > 0.3);
    await alice.stop();
    await until("the page notices", async () => (await page.locator("#status-text").textContent()) === "Reconnecting…");
    assert.equal(openness(await look(page)), 0);
    await page.waitForTimeout(1_200);
    alice.connections = 0;
    await alice.start(port);
    await until("it is back", () => alice.viewers.size === 1);
    await page.waitForTimeout(1_000);
    assert.equal(alice.viewers.size, 1);
    assert.equal(alice.connections, 1);
    assert.equal((await look(page)).sources.live, 1);
    alice.speak("?", [["Here again.", "happy", 1500]]);
    await until("it speaks again", async () => openness(await look(page)) > 0.3);
    alice.interrupt();
  }));

test("microphone and volume follow the server", () =>
  withPage(async (page) => {
    await page.click("#mic");
    await until("muted", async () => (await page.locator("#mic").getAttribute("aria-pressed")) === "true");
    assert.deepEqual(alice.posts.findLast(([path]) => path === "/mic")[1], { muted: true });
    await page.keyboard.press("Control+m");
    await until("live", async () => (await page.locator("#mic").getAttribute("aria-pressed")) === "false");
    alice.emit("volume", { volume: 0.4 });
    await until("the slider moves", async () => (await page.locator("#volume").inputValue()) === "0.4");
    alice.emit("notice", { level: "error", code: "mic_lost", text: "the microphone is gone", hint: "plug it in again" });
    await until("a message", async () => (await page.locator(".toast.error .hint").textContent()) === "plug it in again");
  }));

test("without push-to-talk there is no button to hold, and the space bar sends nothing", () =>
  withPage(async (page) => {
    assert.equal(await page.locator("#hold").isVisible(), false);
    const before = alice.posts.length;
    await page.locator("#transcript").focus();
    await page.keyboard.press("Space");
    await page.waitForTimeout(200);
    assert.deepEqual(alice.posts.slice(before), []);
  }));

test("push-to-talk is held by mouse, keys and touch, and let go in every way", async () => {
  alice.mode = "push-to-talk";
  try {
    await withPage(async (page) => {
      const hold = page.locator("#hold");
      const keys = () => alice.posts.filter(([, body]) => "push_to_talk" in body).map(([, body]) => body.push_to_talk);
      let seen = keys().length;
      /** The key moved so, for the person and for the server. */
      const moved = async (down) => {
        await until(`the server hears ${down}`, () => keys().length > seen);
        assert.deepEqual(keys().slice(seen), [down]);
        seen++;
        assert.equal(await hold.getAttribute("aria-pressed"), String(down));
      };
      const { x, y, width, height } = await hold.boundingBox();
      const middle = [x + width / 2, y + height / 2];

      await page.mouse.move(...middle);
      await page.mouse.down();
      await moved(true);
      await shot(page, "page-push-to-talk");
      await page.mouse.move(5, 5);
      await page.mouse.up();
      await moved(false);

      // The button has the focus now: it is held by its keys and not clicked by them.
      for (const key of ["Space", "Enter"]) {
        await page.keyboard.down(key);
        await page.keyboard.down(key);
        await moved(true);
        await page.keyboard.up(key);
        await moved(false);
      }
      await page.locator("#transcript").focus();
      await page.keyboard.down("Space");
      await moved(true);
      await page.evaluate(() => window.dispatchEvent(new Event("blur")));
      await moved(false);
      await page.keyboard.up("Space");

      await page.locator("#text").focus();
      await page.keyboard.type("a b");
      assert.equal(await page.inputValue("#text"), "a b");
      await page.fill("#text", "");

      const touch = await page.context().newCDPSession(page);
      const at = { x: middle[0], y: middle[1] };
      await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [at] });
      await moved(true);
      await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x: 5, y: 5 }] });
      await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      await moved(false);

      // What assistive technology does: clicks without a pointer.
      await hold.evaluate((button) => button.click());
      await moved(true);
      await page.evaluate(() => {
        Object.defineProperty(document, "hidden", { value: true, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
        delete document.hidden;
      });
      await moved(false);

      // A muted microphone can't be talked into.
      await page.mouse.move(...middle);
      await page.mouse.down();
      await moved(true);
      alice.emit("mic", { state: "muted", device: "none", reason: null });
      await moved(false);
      assert.equal(await hold.isDisabled(), true);
      await page.mouse.up();
      alice.emit("mic", { state: "live", device: "none", reason: null });
      await until("the button is back", async () => !(await hold.isDisabled()));

      await page.setViewportSize({ width: 390, height: 700 });
      await shot(page, "page-push-to-talk-narrow");
      assert.equal(await hold.isVisible(), true);
      const stop = await page.locator("#stop").boundingBox();
      assert.ok(stop.x + stop.width <= 390, "every button is in sight");

      await page.keyboard.down("Space");
      await moved(true);
      // A page that is left while its press is still under way may be too late: docs/page.md.
      await page.waitForTimeout(300);
      await page.goto("about:blank");
      await until("a page that is left lets go", () => keys().at(-1) === false);
    });
  } finally {
    alice.mode = "open";
  }
});
