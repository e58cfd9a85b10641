/** Chance, as a function that tests can seed. */

/** Like `Math.random`: 0 ≤ n < 1. */
export type Random = () => number;

/** A small generator (mulberry32): the same seed gives the same life. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function between(random: Random, low: number, high: number): number {
  return low + random() * (high - low);
}

export function pick<T>(random: Random, from: readonly [T, ...T[]]): T {
  return from[Math.min(Math.floor(random() * from.length), from.length - 1)] ?? from[0];
}
