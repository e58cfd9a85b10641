/** Which frames are drawn and how much time each stands for. */
import { clamp } from "./curves";

/** Animation never leaps further than this in one frame, s. */
const LONGEST_STEP_S = 0.1;
/** A gap this long is a pause: the next frame goes on as if there had been none. */
const PAUSE_MS = 1_000;
/** Springs are stable and look the same at this rate only. */
const PHYSICS_HZ = 60;
const MOST_SUBSTEPS = 4;

export interface Frame {
  /** Seconds that bodies move on in this frame: none after a pause, few after a hitch. */
  dtS: number;
  /** Seconds that passed, for what must keep up with the sound. */
  passedS: number;
  /** After a pause; what swings must begin from rest. */
  resumed: boolean;
}

export class Pacer {
  #last: number | null = null;
  #due = 0;

  constructor(public fps: number) {}

  /** What comes next is the first frame again. */
  pause(): void {
    this.#last = null;
  }

  /** A frame if one is due at `now`, ms. */
  next(now: number): Frame | null {
    if (this.#last === null || now - this.#last > PAUSE_MS) {
      this.#last = now;
      this.#due = now + 1000 / this.fps;
      return { dtS: 0, passedS: PAUSE_MS / 1000, resumed: true };
    }
    // The screen's frames rarely fit the cap; a little early is nearer than one frame late.
    if (now < this.#due - 3) return null;
    this.#due = Math.max(this.#due + 1000 / this.fps, now);
    const passedS = Math.max(0, now - this.#last) / 1000;
    this.#last = now;
    return { dtS: Math.min(passedS, LONGEST_STEP_S), passedS, resumed: false };
  }
}

/** How many steps of physics a frame takes, and how long each is, s. */
export function substeps(dtS: number): { count: number; stepS: number } {
  if (dtS <= 0) return { count: 0, stepS: 0 };
  const bounded = Math.min(dtS, MOST_SUBSTEPS / PHYSICS_HZ);
  const count = clamp(Math.round(bounded * PHYSICS_HZ), 1, MOST_SUBSTEPS);
  return { count, stepS: bounded / count };
}
