/** Vectors as arrays, and curves. Metres; y up, she faces +z, her left is +x. */

const { hypot } = Math;

export const lerp = (a, b, t) => a + (b - a) * t;
export const clamp = (x, low = 0, high = 1) => Math.min(Math.max(x, low), high);
/** 0 before `from`, 1 after `to` (which may be smaller than `from`), smooth between. */
export const smooth = (from, to, x) => {
  const t = clamp((x - from) / (to - from));
  return t * t * (3 - 2 * t);
};
export const bell = (x) => Math.exp(-x * x);
/** Half circle over −1…1, of any roundness. */
export const arch = (s, p = 2, q = 0.5) => Math.max(0, 1 - Math.abs(s) ** p) ** q;

export const add = (a, b) => a.map((x, k) => x + b[k]);
export const sub = (a, b) => a.map((x, k) => x - b[k]);
export const scale = (a, s) => a.map((x) => x * s);
export const mix = (a, b, t) => a.map((x, k) => lerp(x, b[k], t));
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const norm = (a) => scale(a, 1 / (hypot(...a) || 1));
export const distance = (a, b) => hypot(...sub(a, b));

/** Turns a vector around an axis of length 1. */
export function turn(v, axis, angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return add(add(scale(v, c), scale(cross(axis, v), s)), scale(axis, dot(axis, v) * (1 - c)));
}

/** A smooth function through a table of [x, y]; it never swings over a value of the table. */
export function curve(table) {
  const n = table.length;
  const slope = table.slice(1).map(([x, y], k) => (y - table[k][1]) / (x - table[k][0]));
  const tangent = table.map((_, k) => {
    if (k === 0) return slope[0];
    if (k === n - 1) return slope[n - 2];
    const [before, after] = [slope[k - 1], slope[k]];
    return before * after <= 0 ? 0 : (2 * before * after) / (before + after);
  });
  return (x) => {
    if (x <= table[0][0]) return table[0][1];
    if (x >= table[n - 1][0]) return table[n - 1][1];
    let k = 0;
    while (x > table[k + 1][0]) k++;
    const [[x0, y0], [x1, y1]] = [table[k], table[k + 1]];
    const h = x1 - x0;
    const t = (x - x0) / h;
    const u = 1 - t;
    return y0 * (1 + 2 * t) * u * u + y1 * t * t * (3 - 2 * t) + h * (tangent[k] * t * u * u - tangent[k + 1] * t * t * u);
  };
}

/** A path through points (Catmull–Rom), from 0 to 1 with equal steps between the points. */
export function path(points) {
  const last = points.length - 1;
  const at = (k) => points[clamp(k, 0, last)];
  return (t) => {
    const place = clamp(t) * last;
    const k = Math.min(Math.floor(place), last - 1);
    const u = place - k;
    const [a, b, c, d] = [at(k - 1), at(k), at(k + 1), at(k + 2)];
    return b.map((_, i) => 0.5 * (2 * b[i] + (c[i] - a[i]) * u + (2 * a[i] - 5 * b[i] + 4 * c[i] - d[i]) * u * u + (3 * b[i] - a[i] - 3 * c[i] + d[i]) * u * u * u));
  };
}

/** The same path at an even speed. */
export function evenly(way, samples = 64) {
  const lengths = [0];
  let before = way(0);
  for (let k = 1; k <= samples; k++) {
    const here = way(k / samples);
    lengths.push(lengths[k - 1] + distance(here, before));
    before = here;
  }
  const total = lengths[samples];
  return (t) => {
    const wanted = clamp(t) * total;
    let k = 1;
    while (k < samples && lengths[k] < wanted) k++;
    const part = (wanted - lengths[k - 1]) / (lengths[k] - lengths[k - 1] || 1);
    return way((k - 1 + part) / samples);
  };
}

/** Random numbers from 0 to 1 that are the same each time. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
