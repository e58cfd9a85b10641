/** Shapes of change over time. */

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

export function lerp(from: number, to: number, part: number): number {
  return from + (to - from) * part;
}

/** From 0 to 1 with a soft start and a soft end. */
export function smooth(part: number): number {
  const p = clamp(part, 0, 1);
  return p * p * (3 - 2 * p);
}

/** One step of an exponential approach; the same for few long and many short steps. */
export function approach(from: number, to: number, dt: number, constant: number): number {
  return to + (from - to) * Math.exp(-dt / constant);
}
