/** When the eyes close. Intervals and lengths are those of people at rest. */
import { clamp } from "./curves";
import { between, type Random } from "./random";

/** Bounds of the time from the end of a blink to the next one, s. */
export const INTERVAL_S = [1.5, 7.5] as const;
/** Bounds of the length of a blink, s. */
export const LENGTH_S = [0.08, 0.2] as const;
/** Bounds of the pause inside a double blink, s. */
export const DOUBLE_S = [0.06, 0.14] as const;
export const DOUBLE_CHANCE = 0.1;
/** Lids fall faster than they rise. */
const FALL = 0.38;

export class Blink {
  #in: number;
  #length: number;
  /** The one that comes is the second of two. */
  #second = false;

  constructor(private readonly random: Random) {
    this.#in = between(random, ...INTERVAL_S);
    this.#length = between(random, ...LENGTH_S);
  }

  /** Eyes close now, as they do on a wide glance, unless they are closing already. */
  now(): void {
    this.#in = Math.min(this.#in, 0);
  }

  /** How far the lids are closed after another `dtS` seconds, 0–1. */
  step(dtS: number): number {
    this.#in -= dtS;
    if (this.#in > 0) return 0;
    const into = -this.#in / this.#length;
    if (into < 1) return into < FALL ? into / FALL : clamp((1 - into) / (1 - FALL), 0, 1);
    const again: boolean = !this.#second && this.random() < DOUBLE_CHANCE;
    this.#second = again;
    this.#in = again ? between(this.random, ...DOUBLE_S) : between(this.random, ...INTERVAL_S);
    this.#length = between(this.random, ...LENGTH_S);
    return 0;
  }
}
