/**
 * The skin of the head, in the head's own places: the bone at 0, the chin at −0.0125, the crown at
 * 0.238. Three outlines make it: from the front (half width), the profile in front and the profile
 * behind. Cross-sections are superellipses, flatter in front than a circle.
 */
import { add, bell, clamp, cross, curve, lerp, norm, path, scale, smooth, sub } from "./math.mjs";

const { abs, asin, sin, cos, sqrt, PI } = Math;

export const CHIN = -0.0125;
export const CROWN = 0.238;

/** An outline as points [value, y] becomes a function of y. */
function outline(points) {
  const way = path(points);
  const samples = Array.from({ length: 801 }, (_, k) => way(k / 800));
  let high = -1;
  const table = samples.filter(([, y]) => {
    if (y <= high) return false;
    high = y;
    return true;
  });
  return (y) => {
    let [low, top] = [0, table.length - 1];
    if (y <= table[0][1]) return table[0][0];
    if (y >= table[top][1]) return table[top][0];
    while (top - low > 1) {
      const mid = (low + top) >> 1;
      if (table[mid][1] <= y) low = mid;
      else top = mid;
    }
    return lerp(table[low][0], table[top][0], (y - table[low][1]) / (table[top][1] - table[low][1]));
  };
}

const halfWidth = outline([
  [0, -0.0125], [0.009, -0.0118], [0.02, -0.0082], [0.036, 0.001], [0.055, 0.0145], [0.0735, 0.031], [0.0885, 0.052], [0.098, 0.077],
  [0.1035, 0.104], [0.106, 0.132], [0.1015, 0.166], [0.087, 0.199], [0.06, 0.224], [0.03, 0.2355], [0, 0.238],
]);
const front = outline([
  [0.071, -0.0125], [0.08, -0.0112], [0.0875, -0.006], [0.0905, 0.004], [0.0915, 0.014], [0.0925, 0.026], [0.0945, 0.042], [0.0955, 0.06],
  [0.0965, 0.085], [0.1, 0.112], [0.1025, 0.138], [0.0985, 0.17], [0.084, 0.201], [0.052, 0.228], [0.024, 0.2365], [0, 0.238],
]);
const behind = outline([
  [0.071, -0.0125], [0.05, -0.007], [0.015, 0.008], [-0.03, 0.026], [-0.07, 0.044], [-0.1, 0.068], [-0.118, 0.1], [-0.124, 0.135],
  [-0.116, 0.172], [-0.094, 0.205], [-0.056, 0.229], [-0.026, 0.2368], [0, 0.238],
]);
const middle = curve([[CHIN, 0.071], [0, 0.052], [0.02, 0.026], [0.05, 0.002], [0.09, -0.006], [CROWN, 0]]);
const flatness = curve([[CHIN, 2], [0.01, 2.15], [0.05, 2.35], [0.1, 2.4], [0.16, 2.15], [CROWN, 2]]);

export const widthAt = (y) => halfWidth(clamp(y, CHIN, CROWN));

/** Small forms in front: nose, lips, cheeks. `soft` leaves out what would disturb the light. */
function details(x, y, soft) {
  const cheek = 0.0022 * (bell(Math.hypot((abs(x) - 0.045) / 0.026, (y - 0.038) / 0.02)));
  const socket = -0.0016 * bell(Math.hypot((abs(x) - 0.046) / 0.03, (y - 0.09) / 0.022));
  if (soft) return cheek + socket;
  const along = y > 0.0485 ? smooth(0.088, 0.0485, y) ** 1.7 : smooth(0.0395, 0.0485, y);
  const nose = 0.0088 * along * bell(x / lerp(0.0062, 0.0078, smooth(0.08, 0.05, y)));
  const lips = 0.0011 * bell(x / 0.014) * (bell((y - 0.027) / 0.004) + 1.3 * bell((y - 0.0155) / 0.0045) - 0.8 * bell((y - 0.0085) / 0.004));
  return cheek + socket + nose + lips;
}

/** The skin in front at (x, y). */
export function faceDepth(x, y, soft = false) {
  const h = clamp(y, CHIN + 1e-4, CROWN - 1e-4);
  const n = flatness(h);
  const across = Math.min(abs(x) / Math.max(halfWidth(h), 1e-5), 1);
  const zc = middle(h);
  const fade = 1 - smooth(0.75, 1, across);
  return zc + (front(h) - zc) * (1 - across ** n) ** (1 / n) + details(x, y, soft) * fade;
}
export const onFace = (x, y, off = 0) => (off === 0 ? [x, y, faceDepth(x, y)] : add([x, y, faceDepth(x, y)], scale(faceNormal(x, y), off)));

/** Which way the face looks there, of the shape without nose and lips: clean light is worth more than true. */
export function faceNormal(x, y) {
  const h = 1.5e-3;
  const limit = widthAt(y) * 0.985;
  const px = clamp(x, -limit, limit);
  return norm([-(faceDepth(px + h, y, true) - faceDepth(px - h, y, true)) / (2 * h), -(faceDepth(px, y + h, true) - faceDepth(px, y - h, true)) / (2 * h), 1]);
}

/** All around: `angle` 0 is the front, π the back; x is width × sine of it. */
export function onHead(angle, y, off = 0) {
  const place = skin(angle, y);
  return off === 0 ? place : add(place, scale(headNormal(angle, y), off));
}
function skin(angle, y) {
  const w = halfWidth(clamp(y, CHIN, CROWN));
  const x = w * sin(angle);
  if (cos(angle) > 0) return [x, y, faceDepth(x, y)];
  const zc = middle(clamp(y, CHIN, CROWN));
  return [x, y, zc + (behind(clamp(y, CHIN, CROWN)) - zc) * abs(cos(angle))];
}
export function headNormal(angle, y) {
  if (cos(angle) > 0.35) {
    const inside = Math.max(y, CHIN + 0.003);
    return faceNormal(widthAt(inside) * sin(angle), inside);
  }
  const h = 2e-3;
  const low = clamp(y, CHIN + 2 * h, CROWN - 2 * h);
  const a = sub(skin(angle + h * 8, low), skin(angle - h * 8, low));
  const b = sub(skin(angle, low + h), skin(angle, low - h));
  const n = norm(cross(a, b));
  return n[0] * sin(angle) + n[2] * cos(angle) < 0 ? scale(n, -1) : n;
}
/** The angle at which a place of the face lies. */
export const angleOf = (x, y) => asin(clamp(x / Math.max(widthAt(y), 1e-6), -1, 1));

/** Distance along the front from the chin, in which the skin is cut to even triangles. */
const STEPS = 400;
const lengths = [0];
for (let k = 1; k <= STEPS; k++) {
  const [a, b] = [k - 1, k].map((i) => CHIN + ((1 - cos((i / STEPS) * PI)) / 2) * (CROWN - CHIN));
  lengths.push(lengths[k - 1] + sqrt((b - a) ** 2 + Math.max((front(b) - front(a)) ** 2, (halfWidth(b) - halfWidth(a)) ** 2)));
}
export const LENGTH = lengths[STEPS];
export function lengthAt(y) {
  const t = Math.acos(clamp(1 - (2 * (y - CHIN)) / (CROWN - CHIN), -1, 1)) / PI;
  const k = Math.min(Math.floor(t * STEPS), STEPS - 1);
  return lerp(lengths[k], lengths[k + 1], t * STEPS - k);
}
export function heightAt(length) {
  let k = 0;
  while (k < STEPS - 1 && lengths[k + 1] < length) k++;
  const t = (k + clamp((length - lengths[k]) / (lengths[k + 1] - lengths[k]))) / STEPS;
  return CHIN + ((1 - cos(t * PI)) / 2) * (CROWN - CHIN);
}
