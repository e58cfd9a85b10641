/** Plays gestures one after the other, the end of one over the start of the next. */
import { LIBRARY, sample, type ActionName } from "./actions";
import { clamp, smooth } from "./curves";
import { overlay, type Pose } from "./pose";

/** A gesture fades in and out, and into the next one, in this time, s. */
export const FADE_S = 0.35;
/** More than these wait in vain: what was meant for then is odd now. */
const MOST_WAITING = 3;

interface Playing {
  name: ActionName;
  time: number;
  /** How far it is faded in, 0–1. */
  weight: number;
  leaving: boolean;
}

export class Performer {
  #playing: Playing[] = [];
  #waiting: ActionName[] = [];

  /** The gesture that is under way. */
  get current(): ActionName | null {
    return this.#playing.findLast((it) => !it.leaving)?.name ?? null;
  }

  get idle(): boolean {
    return this.#playing.length === 0 && this.#waiting.length === 0;
  }

  /** Plays a gesture when those before it are over, or at once. The same one twice in a row counts once. */
  play(name: ActionName, atOnce = false): void {
    if (atOnce) {
      if (this.current === name) return;
      this.stop();
    }
    const last = this.#waiting.at(-1) ?? this.current;
    if (last !== name && this.#waiting.length < MOST_WAITING) this.#waiting.push(name);
  }

  /** Lets go of all, or of one. */
  stop(name?: ActionName): void {
    this.#waiting = name === undefined ? [] : this.#waiting.filter((it) => it !== name);
    for (const playing of this.#playing) if (name === undefined || playing.name === name) playing.leaving = true;
  }

  step(dtS: number, pose: Pose, amount: number): void {
    for (const playing of this.#playing) {
      playing.time += dtS;
      if (playing.time >= LIBRARY[playing.name].seconds - FADE_S) playing.leaving = true;
      playing.weight = clamp(playing.weight + (playing.leaving ? -dtS : dtS) / FADE_S, 0, 1);
    }
    this.#playing = this.#playing.filter((it) => !it.leaving || it.weight > 0);
    if (this.current === null) {
      const name = this.#waiting.shift();
      if (name !== undefined) this.#playing.push({ name, time: 0, weight: 0, leaving: false });
    }
    for (const { name, time, weight } of this.#playing) {
      overlay(pose, sample(LIBRARY[name], time), smooth(weight), amount);
    }
  }
}
