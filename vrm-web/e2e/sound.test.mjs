/**
 * The page as Alice's microphone and loudspeaker, against Alice herself with her embedded ears and voice
 * and a language model that answers what the test wants. Chromium's microphone is a file.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BIN, skip, startAlice, stopAlice } from "./alice.mjs";
import { look, openBrowser, shot, until } from "./browser.mjs";
import { listen } from "./ears.mjs";
import { FakeModel } from "./fake-model.mjs";
import { startProxy } from "./proxy.mjs";

const HEAR_MS = 60_000;
/** Speech is made ahead, and a reply must last longer than what is done to it. */
const LONG = "The sea is wide and blue, and the ships go slowly over it. ".repeat(12);
const SHORT = "The capital of France is Paris. It lies on the river Seine, and many people live there.";

/** There is a microphone, and nobody allows it. */
const DENIED = ["--use-fake-device-for-media-stream", "--deny-permission-prompts"];

let folder;
let model;
let alice;
let question;

/** 16-bit samples of a WAV file and its rate. */
function readWav(path) {
  const bytes = readFileSync(path);
  const at = bytes.indexOf("data") + 8;
  return { rate: bytes.readUInt32LE(24), samples: new Int16Array(bytes.buffer.slice(bytes.byteOffset + at)) };
}

/** A microphone that hears these one after another: seconds of silence, or the question. */
function microphone(name, parts) {
  const { rate, samples } = question;
  const sound = parts.flatMap((part) => (typeof part === "number" ? new Array(Math.round(part * rate)).fill(0) : [...samples]));
  const bytes = Buffer.alloc(44 + sound.length * 2);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(36 + sound.length * 2, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(sound.length * 2, 40);
  sound.forEach((sample, i) => bytes.writeInt16LE(sample, 44 + 2 * i));
  const path = join(folder, `${name}.wav`);
  writeFileSync(path, bytes);
  // The file begins when the microphone is opened and is not repeated.
  return ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${path}%noloop`];
}

/** Opens a browser with these flags and the page in it, and closes both. */
async function withPage(flags, use, { url = alice.url, context = {}, kept = false, aloud = false } = {}) {
  const browser = await openBrowser(flags, aloud);
  try {
    const page = await (await browser.newContext({ viewport: { width: 480, height: 360 }, ...context })).newPage();
    page.problems = [];
    page.on("pageerror", (error) => page.problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/ERR_|Failed to load resource|WebSocket connection/.test(message.text())) page.problems.push(message.text());
    });
    await page.addInitScript(listen);
    if (kept) await page.addInitScript(() => sessionStorage.setItem("alice.call", "1"));
    await page.goto(`${url}?fps=8&pixels=0.5&calm=1`);
    await use(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await browser.close();
    await post("interrupt", {});
  }
}

const post = (path, body) =>
  fetch(`${alice.url}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

const history = async () => (await (await fetch(`${alice.url}history`)).json()).entries;

async function call(page) {
  await page.click("#call");
  await until("the line is open", async () => (await look(page)).sound.state === "on", 20_000);
}

const level = (page) => page.evaluate(() => window.__heard.level());
const sounds = (page) => until("sound comes out of the page", async () => (await level(page)) > 0.01, HEAR_MS);
const silent = (page) => until("the page is silent", async () => (await level(page)) < 1e-4);
const marks = (page, type) => page.evaluate((type) => window.__heard.down.filter((mark) => mark.type === type), type);
const acks = (page, type) => page.evaluate((type) => window.__heard.up.filter((ack) => ack.type === type), type);

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "alice-sound-"));
  model = await new FakeModel().start();
  const path = join(folder, "question.wav");
  execFileSync(BIN, ["say", "--home", folder, "--set", "voice.engine=piper", "--out", path, "What is the capital of France?"]);
  question = readWav(path);
  alice = await startAlice(folder, "127.0.0.1:0", [...model.settings, "voice.engine=piper"]);
});
after(async () => {
  if (skip) return;
  await stopAlice(alice);
  model.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("a spoken question is heard through the browser, answered, and played by it", { skip }, async () => {
  model.reply = SHORT;
  await withPage(microphone("question", [2, "question", 60]), async (page) => {
    await call(page);
    const hello = await page.evaluate(() => window.__heard.up[0]);
    assert.ok(hello.input_rate >= 8_000 && hello.output_rate >= 8_000 && hello.echo_cancelled, JSON.stringify(hello));
    await sounds(page);
    assert.match(model.asked.at(-1), /france/i, "what was said is what the model was asked");
    // The face follows the page's own sound. Each pair is taken in one frame.
    const pairs = await page.evaluate(
      () =>
        new Promise((done) => {
          const [pairs, end] = [[], performance.now() + 20_000];
          const frame = () => {
            const { playing } = window.__alice.snapshot;
            if (playing) pairs.push([playing.played_ms, window.__heard.positionOf(playing.segment), window.__heard.isWhole()]);
            const over = window.__heard.up.filter(({ type }) => type === "finished").length >= 2;
            if (over || performance.now() > end) done(pairs);
            else setTimeout(frame, 90);
          };
          frame();
        }),
    );
    const apart = pairs.map(([shown, is]) => Math.abs(shown - is)).sort((a, b) => a - b);
    console.log(`face and sound: ${apart.length} looks, apart p50 ${apart[apart.length >> 1]?.toFixed(1)} ms, most ${apart.at(-1)?.toFixed(1)} ms`);
    assert.ok(apart.length > 5 && apart.at(-1) <= 80);
    const torn = pairs.filter(([, , whole]) => !whole).length;
    assert.equal(torn, 0, `${torn} of ${pairs.length} looks at the last 0.7 s are not what was asked for`);
    assert.equal(await page.evaluate(() => window.__heard.gaps()), 0);
    // And all that was asked for is all that came down the line.
    const [asked, came] = await page.evaluate(() => {
      const { starts, sound } = window.__heard;
      return [starts.flatMap(({ samples }) => [...samples]), [...sound.values()].flat().flatMap((part) => [...part])];
    });
    assert.ok(asked.length === came.length && asked.every((sample, i) => Math.abs(sample * 32_768 - came[i]) < 0.5));
    await until("it was played to its end", async () => (await history()).some(({ from_user, text }) => !from_user && text.includes("Seine")), 30_000);
    const entry = (await history()).at(-1);
    assert.equal(entry.interrupted, false);
    const [played, finished, ends] = [await acks(page, "played"), await acks(page, "finished"), await marks(page, "end")];
    assert.equal(finished.length, ends.length);
    assert.ok(played.length >= 10, `${played.length} acknowledgements`);
    const pauses = played.slice(1).flatMap((ack, i) => (ack.index === played[i].index ? [ack.at - played[i].at] : []));
    console.log(`acknowledgements: ${played.length}, p50 ${pauses.sort((a, b) => a - b)[pauses.length >> 1].toFixed(0)} ms apart`);
    assert.equal((await acks(page, "waiting")).length, 0);
  });
});

test("who speaks over her makes the page silent, and only what was heard is kept", { skip }, async () => {
  model.reply = LONG;
  await withPage(microphone("barge-in", [2, "question", 9, "question", 60]), async (page) => {
    await call(page);
    await sounds(page);
    await until("the reply is cut", async () => (await marks(page, "flush")).some(({ turn }) => turn !== null), HEAR_MS);
    const loud = await page.evaluate(
      () =>
        new Promise((done) => {
          const flush = window.__heard.down.findLast(({ type }) => type === "flush");
          const look = () => (window.__heard.level() < 1e-4 ? done(performance.now() - flush.at) : setTimeout(look, 5));
          look();
        }),
    );
    console.log(`silent at most ${loud.toFixed(0)} ms after the flush (seen with the window of 20 ms)`);
    assert.ok((await marks(page, "duck")).some(({ on }) => on), "lowered first");
    const cut = await until("the cut reply is kept", async () => (await history()).findLast(({ from_user, interrupted }) => !from_user && interrupted));
    assert.ok(cut.text.length > 0 && cut.text.length < LONG.length / 2, cut.text);
  });
});

const pulse = (() => {
  try {
    execFileSync("pulseaudio", ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return "pulseaudio is not installed";
  }
})();

test("her own voice, straight from the loudspeaker into the microphone, does not interrupt her", { skip: skip || pulse }, async () => {
  // A sound server of our own, whose microphone hears its loudspeaker and nothing else.
  const home = mkdtempSync(join(tmpdir(), "alice-loop-"));
  const line = `unix:${home}/native`;
  const env = { ...process.env, HOME: home, XDG_RUNTIME_DIR: home, PULSE_RUNTIME_PATH: join(home, "pulse") };
  const modules = ["module-null-sink sink_name=speaker", "module-remap-source master=speaker.monitor source_name=mic", `module-native-protocol-unix socket=${home}/native auth-anonymous=1`];
  const server = spawn("pulseaudio", ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", ...modules.flatMap((it) => ["-L", it])], { env, stdio: "ignore" });
  const before = process.env.PULSE_SERVER;
  try {
    process.env.PULSE_SERVER = line;
    await until("the sound server is there", () => {
      try {
        execFileSync("pactl", ["set-default-source", "mic"], { stdio: "ignore" });
        return true;
      } catch {
        return false;
      }
    });
    model.reply = LONG.slice(0, 240);
    await withPage(
      ["--use-fake-ui-for-media-stream"],
      async (page) => {
        await call(page);
        const { turn } = await (await post("chat", { text: "Tell me about the sea." })).json();
        await sounds(page);
        const from = await page.evaluate(() => window.__heard.levels.length);
        const entry = await until("the reply is over", async () => (await history()).find((it) => it.turn === turn && !it.from_user), 60_000);
        const levels = (await page.evaluate((from) => window.__heard.levels.slice(from), from)).sort((a, b) => a - b);
        console.log(`of her voice the microphone heard ${levels[levels.length >> 1].toFixed(0)} dB (median of ${levels.length} frames)`);
        assert.equal(entry.interrupted, false);
        assert.ok(levels[levels.length >> 1] < -60);
      },
      { aloud: true },
    );
  } finally {
    if (before === undefined) delete process.env.PULSE_SERVER;
    else process.env.PULSE_SERVER = before;
    server.kill();
    rmSync(home, { recursive: true, force: true });
  }
});

test("sound that the browser blocks is kept, not told as played, and a click plays it", { skip }, async () => {
  model.reply = SHORT;
  // Of Chromium's policies this one is about a page's own AudioContext; `user-gesture-required` is not.
  const flags = ["--autoplay-policy=document-user-activation-required", ...DENIED];
  await withPage(
    flags,
    async (page) => {
      // Playwright's own way to ask counts as a gesture.
      const line = await page.context().newCDPSession(page);
      const peek = async (expression) => (await line.send("Runtime.evaluate", { expression, returnByValue: true, userGesture: false })).result.value;
      await until("the line is open", () => peek("window.__alice?.snapshot.sound.state === 'on'"), 30_000);
      assert.equal(await peek("window.__alice.snapshot.sound.blocked"), true);
      await post("chat", { text: "Tell me about Paris." });
      await until("it waits", () => peek("window.__heard.up.filter(({ type }) => type === 'waiting').length >= 8"), HEAR_MS);
      assert.equal(await peek("window.__heard.up.some(({ type }) => type === 'played' || type === 'finished')"), false);
      assert.equal(await peek("window.__alice.snapshot.playing"), null, "the lips wait too");
      assert.equal(await peek("document.querySelector('#tap').hidden"), false);
      assert.ok(!(await history()).at(-1).text.includes("Seine"), "nothing counts as heard");
      await shot(page, "sound-blocked");
      await page.click("#tap");
      await sounds(page);
      assert.equal(await page.isVisible("#tap"), false);
      await until("it was played", async () => (await history()).at(-1).text.includes("Seine"), 30_000);
      const first = (await marks(page, "start"))[0];
      const { index, ms } = (await acks(page, "played"))[0];
      assert.ok(index === first.index && ms < 400, "from its beginning");
    },
    { kept: true },
  );
});

test("a call that goes on after a reload waits for a tap to hear as well", { skip }, async () => {
  await withPage(
    ["--autoplay-policy=document-user-activation-required", ...microphone("reloaded", [60])],
    async (page) => {
      const line = await page.context().newCDPSession(page);
      const peek = async (expression) => (await line.send("Runtime.evaluate", { expression, returnByValue: true, userGesture: false })).result.value;
      await until("the line is open", () => peek("window.__alice?.snapshot.sound.state === 'on'"), 30_000);
      assert.equal(await peek("document.querySelector('#tap').textContent"), "Tap to talk and hear");
      assert.equal(await peek("window.__heard.sent"), 0);
      // Anywhere will do.
      await page.mouse.click(4, 4);
      await until("the microphone is heard", async () => (await page.evaluate(() => window.__heard.sent)) > 10_000);
      assert.equal(await page.isVisible("#tap"), false);
    },
    { kept: true },
  );
});

test("a page without leave for the microphone says what to do and is the loudspeaker all the same", { skip }, async () => {
  model.reply = "I am still here.";
  await withPage(DENIED, async (page) => {
    await call(page);
    assert.match(await page.locator("#toasts").textContent(), /does not let this page use the microphone.*Allow it/);
    const hello = await page.evaluate(() => window.__heard.up[0]);
    assert.equal(hello.input_rate, 0);
    await post("chat", { text: "Are you there?" });
    await sounds(page);
  });
});

test("another microphone and the delay of a speaker are chosen, used at once and remembered", { skip }, async () => {
  model.reply = LONG;
  await withPage(microphone("choice", [60]), async (page) => {
    await call(page);
    await page.click("#sound-box summary");
    const names = await page.locator("#sound select").first().locator("option").allTextContents();
    assert.ok(names.length >= 3 && names[0] === "Chosen by the browser", names.join());
    const before = (await look(page)).sound.microphone;
    const other = names.slice(1).find((name) => name !== before);
    await page.locator("#sound select").first().selectOption({ label: other });
    await until("the other one is used", async () => (await look(page)).sound.microphone === other);
    const sent = await page.evaluate(() => window.__heard.sent);
    await until("and heard", async () => (await page.evaluate(() => window.__heard.sent)) > sent + 10_000);
    assert.equal(await page.evaluate(() => window.__heard.up.filter(({ name }) => name).length), 1, "the line stays");
    await page.fill("#sound input", "250");
    await page.keyboard.press("Tab");
    await shot(page, "sound-settings");
    await post("chat", { text: "Go on." });
    await sounds(page);
    await page.waitForTimeout(600);
    const late = await page.evaluate(() => {
      const { playing } = window.__alice.snapshot;
      return window.__heard.positionOf(playing.segment) - playing.played_ms;
    });
    assert.ok(Math.abs(late - 250) <= 80, `${late} ms`);
    await post("volume", { volume: 0 });
    await silent(page);
    await post("volume", { volume: 1 });
    await sounds(page);
    await page.reload();
    await until("the call goes on", async () => (await look(page)).sound.state === "on", 20_000);
    assert.equal((await look(page)).sound.microphone, other);
    assert.equal(await page.inputValue("#sound input"), "250");
  });
});

test("the line comes back after a restart of Alice, without a word from anybody", { skip }, async () => {
  model.reply = "I am back again.";
  await withPage(microphone("silence", [60]), async (page) => {
    await call(page);
    const { port } = alice;
    await stopAlice(alice);
    await until("the page notices", async () => (await look(page)).sound.state === "reconnecting");
    alice = await startAlice(folder, `127.0.0.1:${port}`, [...model.settings, "voice.engine=piper"]);
    await until("the line is back", async () => (await look(page)).sound.state === "on", 30_000);
    await post("chat", { text: "Are you back?" });
    await sounds(page);
    await page.click("#call");
    await silent(page);
    assert.equal((await look(page)).sound.state, "off");
  });
});

test("the newest page is the one that sounds, and the one before says so and stays quiet", { skip }, async () => {
  await withPage(microphone("two", [60]), async (page) => {
    await call(page);
    const other = await page.context().newPage();
    await other.addInitScript(listen);
    await other.goto(alice.url);
    await call(other);
    await until("the first lets go", async () => (await look(page)).sound.state === "off");
    assert.match(await page.locator("#toasts").textContent(), /Another device/);
    await page.waitForTimeout(2_000);
    assert.deepEqual([(await look(page)).sound.state, (await look(other)).sound.state], ["off", "on"]);
  });
});

const elsewhere = Object.values(networkInterfaces())
  .flat()
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

test("from another machine the page sounds with the token, and says why there is no microphone", { skip: skip || (elsewhere ? false : "this machine has no other address") }, async () => {
  const before = alice;
  await stopAlice(before);
  alice = await startAlice(folder, "0.0.0.0:0", [...model.settings, "voice.engine=piper"]);
  const far = `http://${elsewhere}:${alice.port}/`;
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  const refused = await fetch(`${far}audio`, { headers: { origin: far.slice(0, -1) } });
  assert.equal(refused.status, 401, "our own origin is not enough from elsewhere");
  await withPage(
    microphone("elsewhere", [60]),
    async (page) => {
      await page.goto(`${far}?token=${token}`);
      assert.equal(page.url(), far, "the token left the address");
      await call(page);
      assert.match(await page.locator("#toasts").textContent(), new RegExp(`${elsewhere} is neither`));
      model.reply = "I hear you from afar.";
      await page.fill("#text", "Hello");
      await page.keyboard.press("Enter");
      await sounds(page);
    },
    { url: far },
  );
});

for (const keepHost of [true, false]) {
  test(`behind a reverse proxy with HTTPS that ${keepHost ? "keeps" : "changes"} the host, the page hears and sounds`, { skip }, async () => {
    const proxy = await startProxy(folder, "alice.test", { keepHost });
    try {
      await stopAlice(alice);
      alice = await startAlice(folder, "127.0.0.1:0", [...model.settings, "voice.engine=piper", `server.origins=["${proxy.origin}"]`]);
      proxy.behind = alice.port;
      const token = readFileSync(join(folder, "token"), "utf8").trim();
      const flags = [...microphone("proxied", [3, "question", 60]), "--host-resolver-rules=MAP alice.test 127.0.0.1"];
      await withPage(
        flags,
        async (page) => {
          assert.ok(await until("a stranger's page gets no events", async () => (await page.locator("#status-text").textContent()) !== "Ready"));
          await page.click("#call");
          await until("a stranger is told why", async () => /needs Alice's token/.test(await page.locator("#toasts").textContent()));
          await page.goto(`${proxy.origin}/?token=${token}`);
          assert.equal(page.url(), `${proxy.origin}/`);
          const cookie = (await page.context().cookies()).find(({ name }) => name.startsWith("alice_token"));
          assert.ok(cookie.secure && cookie.httpOnly);
          model.reply = SHORT;
          await call(page);
          await sounds(page);
          assert.match(model.asked.at(-1), /france/i);
          await until("events come through as they happen", async () => (await look(page)).playing !== null, 2_000);
        },
        { url: `${proxy.origin}/`, context: { ignoreHTTPSErrors: true } },
      );
    } finally {
      proxy.stop();
    }
  });
}

test("a proxy that does not pass WebSockets on is named", { skip }, async () => {
  const proxy = await startProxy(folder, "alice.test", { upgrades: false });
  try {
    await stopAlice(alice);
    alice = await startAlice(folder, "127.0.0.1:0", [...model.settings, "voice.engine=piper", `server.origins=["${proxy.origin}"]`]);
    proxy.behind = alice.port;
    const token = readFileSync(join(folder, "token"), "utf8").trim();
    await withPage(
      [...microphone("closed", [60]), "--host-resolver-rules=MAP alice.test 127.0.0.1"],
      async (page) => {
        await page.click("#call");
        await until("it is told", async () => /does not pass WebSockets/.test(await page.locator("#toasts").textContent()));
        assert.equal((await look(page)).sound.state, "off");
      },
      { url: `${proxy.origin}/?token=${token}&`.replace("/?", "/?"), context: { ignoreHTTPSErrors: true } },
    );
  } finally {
    proxy.stop();
  }
});
