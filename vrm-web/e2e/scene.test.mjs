/** The living scene in a real browser, with the VRMs and the VRMA of the fixtures where they are. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { colours, look, openBrowser, openPage, record, recorded, shot, until } from "./browser.mjs";
import { FakeAlice } from "./fake-server.mjs";

const FIXTURES = process.env.ALICE_FIXTURES ?? fileURLToPath(new URL("../../../shared/fixtures", import.meta.url));
const OWN = fileURLToPath(new URL("../../assets/alice.vrm", import.meta.url));
const fixture = (name) => `${FIXTURES}/vrm/${name}`;
const needs = (...names) => {
  const missing = names.filter((name) => !existsSync(fixture(name)));
  return missing.length > 0 && `no ${missing.join(", ")} in ${FIXTURES}: set ALICE_FIXTURES`;
};

const GODETTE = "godette-vrm0.vrm";
const OVERRIDDEN = "expressions-isbinary-overridden-vrm1.vrm";
const OVERRIDES = "expressions-isbinary-overrides-vrm1.vrm";
const MTOON = "mtoon-uv-animation-vrm1.vrm";
const VRMA = "test.vrma";

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

async function withPage(query, use, options = { width: 480, height: 480 }) {
  const page = await openPage(browser, `${alice.url}?${query}`, options);
  try {
    await use(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.close();
  }
}

/** Drops a file on the page, as a person does. */
async function drop(page, name, data) {
  await page.evaluate(
    ({ name, base64 }) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], name));
      document.querySelector("#stage").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    { name, base64: Buffer.from(data).toString("base64") },
  );
}
const dropFile = (page, path) => drop(page, path.split("/").at(-1), readFileSync(path));

/** Waits until a dropped avatar shows: its toast comes with it. */
const worn = (page, text) => until(`${text} is shown`, async () => (await page.locator(".toast.info").allTextContents()).some((it) => it.includes(text)));

test("she breathes, blinks within bounds and looks about, the same way for the same seed", () =>
  withPage("seed=5", async (page) => {
    await record(page);
    await page.waitForTimeout(14_000);
    const seen = await recorded(page);
    const blinks = [];
    let closed = false;
    for (const frame of seen) {
      if (frame.blink > 0 && !closed) blinks.push(frame.at);
      closed = frame.blink > 0;
    }
    const pauses = blinks.slice(1).map((at, i) => at - blinks[i]);
    assert.ok(blinks.length >= 1, "she blinks");
    // Frames are few here: a blink can be missed, so two pauses may seem to be one.
    assert.ok(pauses.every((pause) => pause > 100 && pause < 2 * 7_700), `pauses ${pauses.map(Math.round)}`);
    assert.ok(new Set(seen.map((frame) => frame.eyes[0].toFixed(2))).size >= 3, "the eyes move");
    assert.ok(seen.every((frame) => Math.max(...Object.values(frame.mouth)) === 0), "the mouth stays shut");
  }));

test("no frame shows the T-pose", () =>
  withPage("seed=1", async (page) => {
    // Arms that are stretched out reach the edges of a square picture; arms that hang do not.
    const widest = await page.evaluate(async () => {
      const read = () => {
        const stage = document.querySelector("#stage");
        const copy = document.createElement("canvas");
        [copy.width, copy.height] = [120, 120];
        const pen = copy.getContext("2d", { willReadFrequently: true });
        pen.drawImage(stage, 0, 0, 120, 120);
        const { data } = pen.getImageData(0, 0, 120, 120);
        let [low, high] = [120, -1];
        for (let i = 0; i < 120 * 120; i++) if (data[i * 4 + 3] > 20) [low, high] = [Math.min(low, i % 120), Math.max(high, i % 120)];
        return high < 0 ? 0 : (high - low) / 120;
      };
      const seen = [];
      for (let i = 0; i < 30; i++) {
        await new Promise((done) => requestAnimationFrame(done));
        seen.push(read());
      }
      return Math.max(...seen);
    });
    assert.ok(widest > 0.2 && widest < 0.75, `the figure is ${widest} of the picture wide`);
  }));

test("each of the thirteen emotions shows and goes", () =>
  withPage("seed=2&calm=1", async (page) => {
    const emotions = ["happy", "sad", "angry", "surprised", "relaxed", "thinking", "shy", "fearful", "disgusted", "excited", "confused", "loving"];
    for (const emotion of emotions) {
      alice.emit("feeling", { segment: null, feeling: { emotion, intensity: 1 } });
      await until(emotion, async () => Object.values((await look(page)).moods).some((weight) => weight > 0.15));
      if (["happy", "shy", "angry"].includes(emotion)) {
        await page.waitForTimeout(900);
        await shot(page, `scene-${emotion}`);
      }
      alice.emit("feeling", { segment: null, feeling: { emotion: "neutral", intensity: 0 } });
    }
    const begun = Date.now();
    alice.emit("feeling", { segment: null, feeling: { emotion: "happy", intensity: 1 } });
    await until("happy", async () => (await look(page)).moods.happy > 0.5);
    await until("neutral again", async () => Object.values((await look(page)).moods).every((weight) => weight === 0), 10_000);
    const took = Date.now() - begun;
    assert.ok(took > 4_000 && took < 8_500, `back after ${took} ms`);
  }));

test("she greets, waves, thinks with a hand at her chin, and lets go when she is stopped", () =>
  withPage("seed=4", async (page) => {
    await until("a greeting", async () => ["wave", "bow"].includes((await look(page)).action));
    await until("its end", async () => (await look(page)).action === null);
    await page.evaluate(() => window.__alice.play("wave"));
    await page.waitForTimeout(1_300);
    await shot(page, "scene-wave");
    alice.emit("turn_started", { turn: 900, source: "page", user_text: "?", draft: false });
    await until("thought", async () => (await look(page)).action === "think", 20_000);
    await page.waitForTimeout(1_200);
    await shot(page, "scene-thinking");
    assert.ok((await look(page)).eyes[1] > 0.4, "she looks up and away");
    alice.emit("interrupted", { turn: 900, cause: "request" });
    await until("hands down", async () => (await look(page)).action === null);
  }));

test("a touch on her head is felt, once in its time, and told to the page", () =>
  withPage("seed=6&calm=1", async (page) => {
    await page.evaluate(() => {
      window.__touches = [];
      addEventListener("alice:touch", (event) => window.__touches.push(event.detail.region));
    });
    await page.mouse.click(240, 140);
    await page.mouse.click(240, 140);
    await until("she is glad", async () => (await look(page)).moods.happy > 0.2);
    await page.mouse.click(20, 300);
    assert.deepEqual(await page.evaluate(() => window.__touches), ["head"]);
  }));

test("less motion: the system's wish and the address are followed", async () => {
  const page = await browser.newPage({ viewport: { width: 320, height: 320 }, reducedMotion: "reduce" });
  await page.goto(alice.url);
  await page.waitForFunction(() => window.__alice?.snapshot.frames > 2, null, { timeout: 60_000 });
  const { settings, action } = await look(page);
  assert.deepEqual([settings.calm, settings.motion, action], [true, 0.3, null]);
  await page.goto(`${alice.url}?motion=1&calm=0&look=cursor`);
  await page.waitForFunction(() => window.__alice?.snapshot.frames > 2, null, { timeout: 60_000 });
  assert.deepEqual((await look(page)).settings.look, "cursor");
  await page.mouse.move(300, 160);
  await until("she looks at the cursor", async () => (await look(page)).eyes[0] > 0.5);
  await page.close();
});

test("a hidden page draws nothing, and goes on calmly when it is seen again", () =>
  withPage("seed=1", async (page) => {
    const hide = (hidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    const { frames } = await look(page);
    await page.waitForTimeout(1_500);
    assert.equal((await look(page)).frames, frames);
    await hide(false);
    await until("frames again", async () => (await look(page)).frames > frames + 3);
    await shot(page, "scene-resumed");
    assert.ok((await colours(page)) >= 20);
  }));

test("no more frames are drawn than asked for", () =>
  withPage("seed=1&fps=5&pixels=0.5", async (page) => {
    const { frames } = await look(page);
    await page.waitForTimeout(4_000);
    const drawn = (await look(page)).frames - frames;
    assert.ok(drawn >= 8 && drawn <= 22, `${drawn} frames in 4 s`);
  }));

test("a lost graphics context comes back with her in it", () =>
  withPage("seed=1", async (page) => {
    await page.evaluate(() => {
      const gl = document.querySelector("#stage").getContext("webgl2");
      window.__lose = gl.getExtension("WEBGL_lose_context");
      window.__lose.loseContext();
    });
    await until("it is lost", async () => (await look(page)).lost);
    const { frames } = await look(page);
    await page.waitForTimeout(500);
    assert.equal((await look(page)).frames, frames, "nothing is drawn meanwhile");
    await page.evaluate(() => window.__lose.restoreContext());
    await until("it is back", async () => !(await look(page)).lost);
    await until("frames again", async () => (await look(page)).frames > frames + 3);
    assert.ok((await colours(page)) >= 20);
    page.problems = page.problems.filter((problem) => !/context/i.test(problem));
  }));

test("a broken file is told, and the avatar stays; of two quick ones the last wins", { skip: needs(GODETTE) }, () =>
  withPage("seed=1&calm=1", async (page) => {
    const { avatar } = await look(page);
    await drop(page, "broken.vrm", Buffer.from("this is no avatar"));
    await until("a message", async () => (await page.locator(".toast.error").count()) === 1);
    assert.equal((await look(page)).avatar, avatar);
    await drop(page, "cut.vrm", readFileSync(OWN).subarray(0, 4_000));
    await until("another message", async () => (await page.locator(".toast.error").last().textContent()).includes("cut short"));
    assert.equal((await look(page)).avatar, avatar);
    await dropFile(page, OWN);
    await dropFile(page, fixture(GODETTE));
    await worn(page, "Godette");
    await page.waitForTimeout(2_000);
    assert.match((await look(page)).avatar, /Godette/);
    assert.ok((await colours(page)) >= 20);
    await page.waitForTimeout(800);
    await shot(page, "scene-godette");
    page.problems = page.problems.filter((problem) => !/JSON|Unexpected|buffer/i.test(problem));
  }));

test("VRM 0.x, VRM 1.0 without expressions and the two isBinary samples load without a word", { skip: needs(GODETTE, MTOON, OVERRIDDEN, OVERRIDES) }, () =>
  withPage("seed=1&calm=1", async (page) => {
    const warned = [];
    // The driver's words are not ours, and what VRM 0.x could say of the gaze's curves nobody has ever supported.
    const known = /GL Driver|GPU stall|Curves of LookAtDegreeMap/;
    page.on("console", (message) => ["warning", "error"].includes(message.type()) && !known.test(message.text()) && warned.push(message.text()));
    for (const [name, shown] of [[GODETTE, "Godette"], [MTOON, "UV Animation"], [OVERRIDDEN, "isBinary overridden"], [OVERRIDES, "isBinary overrides"]]) {
      await dropFile(page, fixture(name));
      await worn(page, shown);
      const { frames } = await look(page);
      alice.emit("feeling", { segment: null, feeling: { emotion: "happy", intensity: 1 } });
      await until("frames with it", async () => (await look(page)).frames > frames + 8);
      await shot(page, `scene-${name.split(".")[0]}`);
      alice.emit("feeling", { segment: null, feeling: { emotion: "neutral", intensity: 0 } });
    }
    assert.deepEqual(warned, []);
  }));

/** How many frames showed a red pixel while `window.__watch` was on, and in how many the eyes closed. */
const watch = (page) =>
  page.evaluate(() => {
    window.__watch = { red: 0, green: 0, blinks: 0 };
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [60, 60];
    const pen = copy.getContext("2d", { willReadFrequently: true });
    const each = () => {
      pen.clearRect(0, 0, 60, 60);
      pen.drawImage(document.querySelector("#stage"), 0, 0, 60, 60);
      const { data } = pen.getImageData(0, 0, 60, 60);
      let [red, green] = [0, 0];
      for (let i = 0; i < data.length; i += 4) {
        if (data[i] > 45 && data[i + 1] < data[i] / 2) red++;
        if (data[i + 1] > 45 && data[i] < data[i + 1] / 2) green++;
      }
      if (red > 20) window.__watch.red++;
      if (green > 20) window.__watch.green++;
      if (window.__alice.snapshot.blink > 0) window.__watch.blinks++;
      requestAnimationFrame(each);
    };
    each();
  });

test("overrides are as the isBinary samples define them: their pictures turn red where they are not", { skip: needs(OVERRIDDEN, OVERRIDES) }, () =>
  withPage("seed=1&calm=1", async (page) => {
    // In the one sample a binary blink gives way to any happiness; in the other a binary happiness shuts the blink out.
    for (const [name, shown, intensity] of [[OVERRIDDEN, "isBinary overridden", 0.4], [OVERRIDES, "isBinary overrides", 1]]) {
      const feel = () => alice.emit("feeling", { segment: null, feeling: { emotion: "happy", intensity } });
      feel();
      await dropFile(page, fixture(name));
      await worn(page, shown);
      await until("happiness", async () => (await look(page)).moods.happy > intensity * 0.95);
      await watch(page);
      await until("three frames of blinks", async () => (feel(), await page.evaluate(() => window.__watch.blinks >= 3)), 60_000);
      const seen = await page.evaluate(() => window.__watch);
      assert.ok(seen.green > 20, `the sample is in the picture: ${JSON.stringify(seen)}`);
      assert.equal(seen.red, 0, `${name}: ${JSON.stringify(seen)}`);
      await shot(page, `scene-${name.split(".")[0]}`);
    }
  }));

test("a VRMA plays on VRM 1.0 and 0.x, leaves the mouth alone, and ends in her own stance", { skip: needs(VRMA, GODETTE) }, () =>
  withPage("seed=1&calm=1", async (page) => {
    for (const avatar of [null, GODETTE]) {
      if (avatar) {
        await dropFile(page, fixture(avatar));
        await worn(page, "Godette");
      }
      await dropFile(page, fixture(VRMA));
      await until("it plays", async () => (await look(page)).clip === VRMA);
      await page.waitForTimeout(700);
      await shot(page, `scene-vrma-${avatar ? 0 : 1}`);
      assert.ok(Object.values((await look(page)).mouth).every((weight) => weight === 0));
      await until("it ends", async () => (await look(page)).clip === null, 20_000);
    }
  }));

/** A GLB with nothing but a skeleton with Mixamo's names and one clip: the left arm goes up and the hips down. */
function mixamoGlb() {
  const half = Math.SQRT1_2;
  const floats = [0, 1, 2, 0, 0, 0, 1, 0, 0, half, half, 0, 0, 0, 1, 0, 100, 0, 0, 90, 0, 0, 100, 0];
  const bin = Buffer.alloc(floats.length * 4);
  floats.forEach((value, i) => bin.writeFloatLE(value, i * 4));
  const view = (from, count) => ({ buffer: 0, byteOffset: from * 4, byteLength: count * 4 });
  const json = {
    asset: { version: "2.0" },
    scene: 0,
    scenes: [{ nodes: [0] }],
    nodes: [
      { name: "Armature", scale: [0.01, 0.01, 0.01], children: [1] },
      { name: "mixamorig:Hips", translation: [0, 100, 0], children: [2] },
      { name: "mixamorig:LeftArm", translation: [15, 40, 0] },
    ],
    buffers: [{ byteLength: bin.length }],
    bufferViews: [view(0, 3), view(3, 12), view(15, 9)],
    accessors: [
      { bufferView: 0, componentType: 5126, count: 3, type: "SCALAR", min: [0], max: [2] },
      { bufferView: 1, componentType: 5126, count: 3, type: "VEC4" },
      { bufferView: 2, componentType: 5126, count: 3, type: "VEC3" },
    ],
    animations: [
      {
        name: "mixamo.com",
        channels: [
          { sampler: 0, target: { node: 2, path: "rotation" } },
          { sampler: 1, target: { node: 1, path: "translation" } },
        ],
        samplers: [
          { input: 0, output: 1 },
          { input: 0, output: 2 },
        ],
      },
    ],
  };
  let text = JSON.stringify(json);
  while (text.length % 4) text += " ";
  const head = Buffer.alloc(20);
  head.write("glTF", 0);
  head.writeUInt32LE(2, 4);
  head.writeUInt32LE(20 + text.length + 8 + bin.length, 8);
  head.writeUInt32LE(text.length, 12);
  head.write("JSON", 16);
  const middle = Buffer.alloc(8);
  middle.writeUInt32LE(bin.length, 0);
  middle.write("BIN\0", 4);
  return Buffer.concat([head, Buffer.from(text), middle, bin]);
}

test("a clip with Mixamo's skeleton is put on her; one without any bone is told", () =>
  withPage("seed=1&calm=1", async (page) => {
    await drop(page, "arm-up.glb", mixamoGlb());
    await until("it plays", async () => (await look(page)).clip === "arm-up.glb");
    await page.waitForTimeout(900);
    await shot(page, "scene-mixamo");
    await until("it ends", async () => (await look(page)).clip === null, 20_000);
    await drop(page, "broken.fbx", Buffer.from("Kaydara? no"));
    await until("a message", async () => (await page.locator(".toast.error").textContent())?.includes("broken.fbx"));
    await drop(page, "notes.txt", Buffer.from("hello"));
    await until("a hint", async () => (await page.locator(".toast.warning").textContent())?.includes("notes.txt"));
  }));

test("twenty changes of the model leave nothing behind on the GPU", { skip: needs(GODETTE) }, () =>
  withPage("seed=1&calm=1&pixels=0.5", async (page) => {
    const wear = async (path, shown) => {
      await page.evaluate(() => document.querySelectorAll(".toast").forEach((toast) => toast.remove()));
      await dropFile(page, path);
      await worn(page, shown);
      const { frames } = await look(page);
      await until("frames with it", async () => (await look(page)).frames > frames + 2);
      return (await look(page)).held;
    };
    const held = [];
    for (let i = 0; i < 10; i++) {
      await wear(OWN, "Alice");
      held.push(await wear(fixture(GODETTE), "Godette"));
    }
    for (const now of held) assert.deepEqual(now, held[0]);
  }, { width: 320, height: 320 }));

test("the page's own work in a frame is small", () =>
  withPage("seed=1&pixels=0.5", async (page) => {
    alice.speak("?", [["A sentence of a few seconds that moves the lips and the head.", "excited", 10_000]]);
    await page.waitForTimeout(9_000);
    const costs = (await page.evaluate(() => window.__alice.costs)).slice(5);
    const share = (name, part) => costs.map((cost) => cost[name]).sort((a, b) => a - b)[Math.floor(costs.length * part)];
    const told = (name) => `p50 ${share(name, 0.5).toFixed(2)}, p95 ${share(name, 0.95).toFixed(2)} ms`;
    console.log(`a frame's cost, ${costs.length} frames: ours ${told("script")}; three.js and the driver ${told("draw")}`);
    assert.ok(costs.length > 20);
    // On a quiet machine the p95 is held to the same bar (docs/page.md); a crowded one is not the page's fault.
    assert.ok(share("script", 0.5) <= 3, told("script"));
    alice.interrupt();
  }, { width: 1280, height: 720 }));
