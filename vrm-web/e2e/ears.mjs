/** What a test hears of the page: its sound, and both directions of `/audio`. Runs in the page. */

/** Put in before the page's own scripts. */
export function listen() {
  const heard = { up: [], down: [], sent: 0, levels: [], sound: new Map(), starts: [], context: null, analyser: null };
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
      else {
        heard.sent += data.byteLength;
        const samples = new Int16Array(data);
        const power = samples.reduce((sum, sample) => sum + (sample / 32768) ** 2, 0) / samples.length;
        heard.levels.push(10 * Math.log10(power + 1e-12));
      }
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
    heard.starts.push({ at: Math.round(when * this.context.sampleRate), samples: this.buffer.getChannelData(0).slice() });
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
   * Whether the last 0.7 s that were rendered are, sample for sample, what was asked for: each part from
   * its frame on, and silence where there is none. A gap or an overlap of one sample would show.
   */
  heard.isWhole = () => {
    const out = heard.rendered();
    const end = Math.round(heard.context.currentTime * heard.context.sampleRate);
    // The clock that a page sees goes in steps.
    const slack = 8192;
    const wanted = new Float32Array(out.length + 2 * slack);
    const first = end - out.length - slack;
    for (const { at, samples } of heard.starts) samples.forEach((sample, i) => (wanted[at + i - first] = sample));
    for (let shift = 0; shift <= 2 * slack; shift++) {
      let i = 0;
      while (i < out.length && Math.abs(out[i] - wanted[i + shift]) < 1e-4) i++;
      if (i === out.length) return true;
    }
    return false;
  };
  /** Parts of sound of one segment that do not begin where the one before ended. */
  heard.gaps = () => {
    let [to, cursor, gaps] = [0, 0, 0];
    const ends = [...heard.sound.values()].map((parts) => (to += parts.reduce((sum, part) => sum + part.length, 0)));
    heard.starts.forEach(({ at, samples }, k) => {
      const before = heard.starts[k - 1];
      if (before && !ends.includes(cursor) && before.at + before.samples.length !== at) gaps++;
      cursor += samples.length;
    });
    return gaps;
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
      if (cursor >= from && cursor < to) frames += Math.min(Math.max(now - start.at, 0), start.samples.length);
      cursor += start.samples.length;
    }
    return (frames / context.sampleRate) * 1000;
  };
}
