/**
 * Plays what Alice sends and tells what of it was heard. Decides; a `Deck` makes the sound.
 */
import type { SegmentId } from "../protocol";
import type { Ack, Mark } from "./messages";
import { REPORT_MS, Schedule } from "./schedule";

/** What makes the sound: an `AudioContext`, or a test. */
export interface Deck {
  /** Frames a second. */
  readonly rate: number;
  /** It sounds; a browser may wait for a tap, or be called away. */
  readonly running: boolean;
  /** Frames that were handed to the device. */
  now(): number;
  /** Frames between that and the ear. */
  latency(): number;
  play(samples: Float32Array, at: number): void;
  /** Fades out in 10 ms and drops what was to come. */
  cut(): void;
  /** Goes to a loudness within so many ms. */
  loudness(gain: number, ms: number): void;
}

/** −18 dB. */
const DUCKED = 10 ** (-18 / 20);
const FALL_MS = 10;
const RISE_MS = 100;
/** Only so much is handed to the deck ahead of time, s; a page in the background looks once a second. */
const AHEAD_S = 3;
/** Most sound that is kept, s. The longest reply is shorter. */
export const KEPT_S = 300;
/** How often Alice is told that sound waits for a tap, ms. */
const WAITING_MS = 1_000;
/** How long, ms. Alice waits a minute. */
const GIVE_UP_MS = 55_000;

type Item = { kind: "begin"; segment: SegmentId } | { kind: "end"; segment: SegmentId } | { kind: "sound"; samples: Int16Array };

export class Player {
  readonly #schedule: Schedule;
  #inbox: Item[] = [];
  #kept = 0;
  #volume = 1;
  #ducked = false;
  #gain = 1;
  #blockedAt: number | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deck: Deck) {
    this.#schedule = new Schedule(deck.rate);
  }

  /** There is sound that may not be played: a tap would help. */
  get blocked(): boolean {
    return !this.deck.running && this.#first !== null;
  }

  /** What is heard at this moment, and how far it is. */
  get position(): { segment: SegmentId; played_ms: number } | null {
    return this.deck.running ? this.#schedule.at(this.#heard) : null;
  }

  /** Takes a message of text. */
  mark(mark: Mark): void {
    switch (mark.type) {
      case "start":
        this.#inbox.push({ kind: "begin", segment: { turn: mark.turn, index: mark.index } });
        break;
      case "end":
        this.#inbox.push({ kind: "end", segment: { turn: mark.turn, index: mark.index } });
        break;
      case "flush":
        this.flush();
        break;
      case "duck":
        this.#ducked = mark.on;
        this.#loudness();
        break;
      case "volume":
        this.#volume = Math.min(Math.max(mark.volume, 0), 1);
        this.#loudness();
        break;
      case "ready":
        break;
    }
    this.#hand();
  }

  /** Takes sound of the segment that began last: s16le, whole samples. */
  sound(bytes: ArrayBuffer): void {
    const samples = samplesOf(bytes);
    // More than Alice ever says at once: what is too much is not kept, nor told as played.
    if (this.#kept + samples.length > KEPT_S * this.deck.rate) return;
    this.#kept += samples.length;
    this.#inbox.push({ kind: "sound", samples });
    this.#hand();
  }

  /** Is silent at once and forgets everything. */
  flush(): void {
    this.#inbox = [];
    this.#kept = 0;
    this.#blockedAt = null;
    this.#toldAt = Number.NEGATIVE_INFINITY;
    this.#schedule.flush();
    this.deck.cut();
  }

  /** Looks at the clock (ms, of any origin): what to tell Alice. */
  tick(nowMs: number): Ack[] {
    this.#hand();
    if (!this.deck.running) return this.#waiting(nowMs);
    this.#blockedAt = null;
    return this.#schedule.report(this.#heard).map(({ segment, played_ms, done }) => {
      if (done) return { type: "finished", ...segment };
      return { type: "played", ...segment, ms: Math.round(played_ms * 10) / 10 };
    });
  }

  /** When to look again, ms; `null` while there is nothing to play. */
  get wait(): number | null {
    if (this.#first === null) return null;
    if (!this.deck.running) return REPORT_MS;
    return this.#schedule.wait(this.#heard) ?? REPORT_MS;
  }

  get #heard(): number {
    return this.deck.now() - this.deck.latency();
  }

  get #first(): SegmentId | null {
    if (this.#schedule.first) return this.#schedule.first;
    const begin = this.#inbox.find((item) => item.kind === "begin");
    return begin?.segment ?? null;
  }

  #waiting(nowMs: number): Ack[] {
    const first = this.#first;
    if (!first) {
      this.#blockedAt = null;
      return [];
    }
    this.#blockedAt ??= nowMs;
    if (nowMs - this.#toldAt < WAITING_MS || nowMs - this.#blockedAt > GIVE_UP_MS) return [];
    this.#toldAt = nowMs;
    return [{ type: "waiting", ...first }];
  }

  /** Gives the deck what it is to play soon. */
  #hand(): void {
    const now = this.deck.now();
    let taken = 0;
    for (const item of this.#inbox) {
      if (item.kind === "begin") this.#schedule.begin(item.segment);
      else if (item.kind === "end") this.#schedule.end(item.segment);
      else {
        if (this.#schedule.until > now + AHEAD_S * this.deck.rate) break;
        this.#kept -= item.samples.length;
        const at = this.#schedule.add(item.samples.length, now);
        if (at !== null) this.deck.play(Float32Array.from(item.samples, (sample) => sample / 32_768), at);
      }
      taken++;
    }
    if (taken > 0) this.#inbox.splice(0, taken);
  }

  #loudness(): void {
    const gain = this.#volume * (this.#ducked ? DUCKED : 1);
    if (gain === this.#gain) return;
    this.deck.loudness(gain, gain < this.#gain ? FALL_MS : RISE_MS);
    this.#gain = gain;
  }
}

function samplesOf(bytes: ArrayBuffer): Int16Array {
  const view = new DataView(bytes);
  const samples = new Int16Array(bytes.byteLength >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true);
  return samples;
}
