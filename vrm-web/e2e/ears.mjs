/** What a test hears of the page: its sound, and both directions of `/audio`. Runs in the page. */

/** Put in before the page's own scripts. */
export function listen() {
  const heard = { up: [], down: [], sent: 0, sound: new Map(), starts: [], context: null, analyser: null };
  window.__heard = heard;
  const now = () => performance.now();

  window.WebSocket = class extends WebSocket {
    #segment = null;
    constructor(url, ...rest) {
      super(url, ...rest);
      this.addEventListener("message", ({ data }) => {
        if (typeof data === "string") {
          const mark = JSON.parse(data);
          heard.down.push({ at: now(), ...mark });
          if (mark.type === "start") this.#segment = `${mark.turn}.${mark.index}`;
          return;
        }
        const before = heard.sound.get(this.#segment) ?? [];
        before.push(new Int16Array(data));
        heard.sound.set(this.#segment, before);
      });
    }
    send(data) {
      if (typeof data === "string") heard.up.push({ at: now(), ...JSON.parse(data) });
      else heard.sent += data.byteLength;
      super.send(data);
    }
  };

  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      heard.context = this.context;
      heard.analyser = new AnalyserNode(this.context, { fftSize: 32768 });
      connect.call(this, heard.analyser);
    }
    return connect.call(this, target, ...rest);
  };
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (when, ...rest) {
    heard.starts.push({ at: Math.round(when * this.context.sampleRate), frames: this.buffer.length });
    return start.call(this, when, ...rest);
  };

  /** The last samples that the page rendered. */
  heard.rendered = () => {
    const samples = new Float32Array(heard.analyser?.fftSize ?? 0);
    heard.analyser?.getFloatTimeDomainData(samples);
    return samples;
  };
  /** How loud the last 20 ms were. */
  heard.level = () => {
    const samples = heard.rendered().slice(-960);
    return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(samples.length, 1));
  };
  /**
   * Where the last 0.7 s of what was rendered lie in what came down the line, sample for sample: a gap, an
   * overlap or a wrong sample between them makes it `null`.
   */
  heard.place = () => {
    const out = heard.rendered();
    const sound = Float32Array.from([...heard.sound.values()].flat().flatMap((part) => [...part]), (sample) => sample / 32768);
    const same = (at, i) => Math.abs(out[i] - sound[at + i]) < 1e-4;
    for (let at = 0; at + out.length <= sound.length; at++) {
      let i = 0;
      while (i < out.length && same(at, i)) i++;
      if (i === out.length) return at;
    }
    return null;
  };
  /** How far a segment is by the clock of the context and what was asked of it alone, ms. */
  heard.positionOf = ({ turn, index }) => {
    const { context } = heard;
    const now = (context.currentTime - context.baseLatency - context.outputLatency) * context.sampleRate;
    let [from, to, cursor, frames] = [0, 0, 0, 0];
    for (const [name, parts] of heard.sound) {
      [from, to] = [to, to + parts.reduce((sum, part) => sum + part.length, 0)];
      if (name === `${turn}.${index}`) break;
    }
    for (const start of heard.starts) {
      if (cursor >= from && cursor < to) frames += Math.min(Math.max(now - start.at, 0), start.frames);
      cursor += start.frames;
    }
    return (frames / context.sampleRate) * 1000;
  };
}
