/**
 * A small server that speaks the protocol of `docs/http-api.md`, with a speaker that plays nothing
 * at real time. The page is tested against it in every detail of timing; `real.test.mjs` tests the
 * page against Alice herself.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const DIST = new URL("../dist/", import.meta.url);
const AVATAR = new URL("../../assets/alice.vrm", import.meta.url);
/** What Alice's server lets a page do (`src/server/page.rs`). */
const POLICY = "default-src 'self'; img-src 'self' blob: data:; connect-src 'self' blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

export class FakeAlice {
  posts = [];
  viewers = new Set();
  /** How she is spoken to. */
  mode = "open";
  /** How many connections to `/events` were ever made. */
  connections = 0;
  #epoch = "";
  #seq = 0;
  #start = 0;
  #server = null;
  #turn = 0;
  #history = [];
  #segments = [];
  #playing = null;
  #said = "";
  #timers = new Set();
  #current = null;

  async start(port = 0) {
    this.#epoch = `e${Date.now()}`;
    this.#seq = 0;
    this.#start = performance.now();
    this.#segments = [];
    this.#playing = null;
    this.#current = null;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    await new Promise((done) => this.#server.listen(port, "127.0.0.1", done));
    this.port = this.#server.address().port;
    this.url = `http://127.0.0.1:${this.port}/`;
    return this;
  }

  async stop() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const viewer of this.viewers) viewer.destroy();
    this.viewers.clear();
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  now() {
    return performance.now() - this.#start;
  }

  emit(type, fields, withId = true) {
    const data = JSON.stringify({ seq: 0, session: "fake", at_ms: this.now(), type, ...fields });
    const id = withId ? `id: ${this.#epoch}-${++this.#seq}\n` : "";
    for (const viewer of this.viewers) viewer.write(`${id}event: ${type}\ndata: ${data}\n\n`);
  }

  /** Answers with these sentences: `[text, emotion, milliseconds]`. */
  speak(userText, sentences) {
    const turn = ++this.#turn;
    this.#said = "";
    this.#current = { turn, source: "page", user_text: userText, said: "" };
    this.#history.push({ turn, from_user: true, text: userText, interrupted: false });
    this.emit("turn_started", { turn, source: "page", user_text: userText, draft: false });
    this.#segments = sentences.map(([text, emotion, duration], index) => segment(turn, index, text, emotion, duration));
    for (const ready of this.#segments) this.emit("segment_ready", ready);
    this.#later(150, () => {
      this.emit("speaking_started", { turn });
      this.#play(turn);
    });
    return turn;
  }

  #play(turn) {
    const next = this.#segments[0];
    if (!next) {
      this.emit("speaking_ended", { turn, heard: { text: this.#said, complete: true } });
      this.#complete(turn, false);
      return;
    }
    this.#playing = { id: next.id, since: this.now() };
    this.emit("segment_started", { segment: next.id });
    const report = () => {
      if (this.#playing?.id !== next.id) return;
      const played = Math.min(this.now() - this.#playing.since, next.duration_ms);
      this.emit("segment_progress", { segment: next.id, played_ms: played }, false);
      if (played < next.duration_ms) {
        this.#later(Math.min(100, next.duration_ms - played), report);
        return;
      }
      this.emit("segment_finished", { segment: next.id });
      this.#said = `${this.#said} ${next.display}`.trim();
      this.#segments.shift();
      this.#playing = null;
      this.#later(60, () => this.#play(turn));
    };
    this.#later(100, report);
  }

  #complete(turn, interrupted) {
    this.#history.push({ turn, from_user: false, text: this.#said, interrupted });
    this.emit("turn_completed", { turn, content: this.#said, interrupted });
    this.#current = null;
  }

  interrupt() {
    const turn = this.#current?.turn;
    this.emit("interrupted", { turn: null, cause: "request" });
    if (turn === undefined) return;
    this.#segments = [];
    this.#playing = null;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.emit("speaking_ended", { turn, heard: { text: this.#said, complete: false } });
    this.#complete(turn, true);
  }

  #later(ms, act) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
  }

  #snapshot() {
    const playing = this.#playing && { segment: this.#playing.id, played_ms: this.now() - this.#playing.since };
    return {
      type: "snapshot",
      epoch: this.#epoch,
      seq: this.#seq,
      at_ms: this.now(),
      session: "fake",
      name: "Alice",
      version: "0",
      volume: 1,
      mode: this.mode,
      history: this.#history,
      notices: [],
      scene: {
        state: playing ? "speaking" : this.#current ? "thinking" : "listening",
        listen: "listening",
        mic: { state: "live", device: "none", reason: null },
        engines: {},
        turn: this.#current && { ...this.#current, said: this.#said },
        segments: this.#segments,
        playing,
        subtitle: { text: "", said: "" },
        feeling: playing ? this.#segments[0].feeling : { emotion: "neutral", intensity: 0 },
        mouth: {},
      },
    };
  }

  async #serve(request, response) {
    const path = new URL(request.url, this.url).pathname;
    if (path === "/events") {
      this.connections++;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`id: ${this.#epoch}-${this.#seq}\nevent: snapshot\ndata: ${JSON.stringify(this.#snapshot())}\n\n`);
      this.viewers.add(response);
      response.on("close", () => this.viewers.delete(response));
      return;
    }
    if (request.method === "POST") {
      let text = "";
      for await (const part of request) text += part;
      const body = JSON.parse(text);
      this.posts.push([path, body]);
      response.writeHead(200, { "content-type": "application/json" });
      response.end("{}");
      if (path === "/chat") this.speak(body.text, this.reply);
      if (path === "/interrupt") this.interrupt();
      if (path === "/mic" && "push_to_talk" in body) this.emit("listen", { state: body.push_to_talk ? "listening" : "idle" });
      else if (path === "/mic") this.emit("mic", { state: body.muted ? "muted" : "live", device: "none", reason: null });
      if (path === "/volume") this.emit("volume", body);
      return;
    }
    const file = path === "/avatar.vrm" ? AVATAR : new URL(`.${path === "/" ? "/index.html" : path}`, DIST);
    const data = await readFile(file).catch(() => null);
    response.writeHead(data ? 200 : 404, { "content-type": TYPES[fileURLToPath(file).split(".").at(-1)] ?? "application/octet-stream", "content-security-policy": POLICY });
    response.end(data ?? "");
  }

  reply = [
    ["I am so glad to see you!", "happy", 1400],
    ["It has been a long day.", "sad", 1400],
  ];
}

function segment(turn, index, text, emotion, duration) {
  const visemes = [];
  const vowels = ["aa", "ih", "ou", "ee", "oh"];
  for (let at = 0; at <= duration; at += 100) {
    const frame = { at_ms: at, aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 };
    if (at > 0 && at < duration - 50) frame[vowels[(at / 100) % 5]] = 0.9;
    visemes.push(frame);
  }
  visemes.push({ at_ms: duration, aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 });
  return { id: { turn, index }, display: text, spoken: text, feeling: { emotion, intensity: 0.9 }, visemes, duration_ms: duration, media: `m${index}`, words: [] };
}
