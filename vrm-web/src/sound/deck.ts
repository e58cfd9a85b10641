/** An `AudioContext` as the deck of the player. */
import type { Deck } from "./player";

const FADE_S = 0.01;

export class ContextDeck implements Deck {
  readonly #context: AudioContext;
  /** What the loudspeaker adds to what the browser knows of, s. */
  readonly #offset: () => number;
  readonly #loud: GainNode;
  /** What plays now; another one after each cut. */
  #bus: GainNode;
  #sources = new Set<AudioBufferSourceNode>();

  /** `offsetMs`: what the person set for their loudspeaker. */
  constructor(context: AudioContext, offsetMs: () => number) {
    this.#context = context;
    this.#offset = offsetMs;
    this.#loud = context.createGain();
    this.#loud.connect(context.destination);
    this.#bus = this.#open();
  }

  get rate(): number {
    return this.#context.sampleRate;
  }

  get running(): boolean {
    return this.#context.state === "running";
  }

  now(): number {
    return Math.round(this.#context.currentTime * this.rate);
  }

  latency(): number {
    // Safari tells none of the second.
    const known = this.#context.baseLatency + (this.#context.outputLatency || 0);
    return Math.round((known + this.#offset() / 1000) * this.rate);
  }

  play(samples: Float32Array, at: number): void {
    const buffer = this.#context.createBuffer(1, samples.length, this.rate);
    buffer.getChannelData(0).set(samples);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    const [bus, sources] = [this.#bus, this.#sources];
    source.connect(bus);
    source.onended = () => {
      sources.delete(source);
      source.disconnect();
      if (bus !== this.#bus && sources.size === 0) bus.disconnect();
    };
    sources.add(source);
    source.start(at / this.rate);
  }

  cut(): void {
    if (this.#sources.size === 0) return;
    const [bus, sources] = [this.#bus, this.#sources];
    const now = this.#context.currentTime;
    bus.gain.setValueAtTime(1, now);
    bus.gain.linearRampToValueAtTime(0, now + FADE_S);
    for (const source of sources) source.stop(now + FADE_S);
    // The clock of a context that does not run stands still, and the sound in it would come later.
    if (!this.running) bus.disconnect();
    this.#sources = new Set();
    this.#bus = this.#open();
  }

  loudness(gain: number, ms: number): void {
    const { gain: knob } = this.#loud;
    const now = this.#context.currentTime;
    knob.cancelScheduledValues(now);
    knob.setValueAtTime(knob.value, now);
    knob.linearRampToValueAtTime(gain, now + ms / 1000);
  }

  #open(): GainNode {
    const bus = this.#context.createGain();
    bus.connect(this.#loud);
    return bus;
  }
}
