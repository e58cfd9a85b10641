/**
 * Hair: a cap over the skull, broad strands over the cap, a fringe, side locks and long hair behind,
 * each strand a blade that is thick in its middle and ends in a point. Head's own places.
 */
import { add, arch, clamp, cross, curve, evenly, lerp, norm, path, random, scale, smooth, sub } from "./math.mjs";
import { Mesh } from "./mesh.mjs";
import { BACK_ANGLES, BACK_HEIGHTS, backPoint, blend, FRINGE, fromHead, hanging, HEAD, SIDE_POINTS } from "./skeleton.mjs";

const { sin, cos, abs, atan2, sqrt, PI } = Math;

const CENTER = [0, 0.127, -0.013];
const SHELL = [0.1185, 0.1235, 0.1285];

/** On the hair: `up` is the angle above the middle of the skull, `around` from the front to her left. */
function onHair(up, around, off = 0) {
  const [rx, ry, rz] = SHELL.map((r) => r + off);
  return add(CENTER, [rx * cos(up) * sin(around), ry * sin(up), rz * cos(up) * cos(around)]);
}

/** Texture places: v by height, so that light and colour run on over all strands; u by strand. */
const TOP = 0.265;
const BOTTOM = -0.36;
const hairUv = (u0, width) => ([u], [, y]) => [u0 + u * width, clamp((TOP - y) / (TOP - BOTTOM), 0.002, 0.998)];

let strandNumber = 0;

/**
 * A strand along points `[x, y, z]`, `width` half as wide as it gets. It lies flat on the head:
 * its thin side points away from the middle.
 */
function strand(points, { width, thick = 0.0085, rows = 12, columns = 6, root = 0.55, tip = 1.7, fat = 0.35, lift = 0, from = CENTER, twist = 0 }) {
  const way = evenly(path(points));
  const step = 2e-3;
  const size = (v) => lerp(root, 1, smooth(0, fat, v)) * (1 - v ** 3.2) ** (1 / tip) + 0.0001;
  const number = strandNumber++;
  const mesh = Mesh.grid(rows, columns, true, (v, u) => {
    const t = v ** 0.92;
    const ahead = norm(sub(way(Math.min(1, t + step)), way(Math.max(0, t - step))));
    const center = way(t);
    const away = norm(sub(center, [from[0], clamp(center[1], -1, from[1]), from[2]]));
    let wide = norm(cross(ahead, away));
    let out = cross(wide, ahead);
    if (twist !== 0) {
      const [c, s] = [cos(twist * t), sin(twist * t)];
      [wide, out] = [add(scale(wide, c), scale(out, s)), add(scale(out, c), scale(wide, -s))];
    }
    const angle = u * 2 * PI;
    const w = width * size(t);
    const x = w * cos(angle);
    // Rounder outside than inside, with a soft ridge; bent so that the edges lie on the head.
    const high = thick * (0.3 + 0.7 * size(t)) * (sin(angle) > 0 ? sin(angle) : 0.45 * sin(angle));
    const bend = (x * x) / 0.16;
    return add(center, add(scale(wide, x), scale(out, high - bend + lift * thick)));
  }).outward();
  return mesh.uv(hairUv((number * 0.37) % 1, 0.3));
}

/** Where hair begins, around the head. */
const hairline = curve([[0, 0.52], [0.5, 0.5], [0.95, 0.36], [1.25, 0.1], [1.5, -0.35], [1.9, -0.62], [2.4, -0.72], [PI, -0.74]]);

function cap() {
  const mesh = Mesh.grid(9, 32, true, (v, u) => {
    const around = (u * 2 - 1) * PI;
    const up = lerp(PI / 2, hairline(abs(around)) - 0.06, v);
    return onHair(up, around, lerp(-0.001, -0.0075, smooth(0.55, 1, v)));
  }).outward();
  return mesh.uv(([u], [, y]) => [u * 4, clamp((TOP - y) / (TOP - BOTTOM), 0.002, 0.998)]);
}

/** Broad strands from the whorl over the back and the sides of the head. */
function crown() {
  const strands = [];
  const count = 13;
  for (let k = 0; k < count; k++) {
    const around = lerp(1.02, 2 * PI - 1.02, k / (count - 1));
    const swirl = 0.16 * sin(k * 2.1);
    const end = abs(around - PI) > 1.7 ? -0.1 : -0.42;
    const points = [0, 0.25, 0.5, 0.75, 1].map((t) => onHair(lerp(1.5, end, t), around + swirl * sin(t * PI) * 0.5, lerp(-0.004, 0.006, smooth(0, 0.4, t)) - 0.002 * smooth(0.7, 1, t)));
    strands.push(strand(points, { width: 0.037, thick: 0.0095, rows: 9, root: 0.15, tip: 2.6, fat: 0.55 }));
  }
  return strands;
}

/**
 * The fringe, parted on her left: around at the root and at the tip, height of the tip, half width,
 * how far it stands off.
 */
const FRINGE_STRANDS = [
  [0.12, -0.02, 0.101, 0.0165, 0.003],
  [0.02, -0.33, 0.1205, 0.0225, 0.0],
  [-0.2, -0.62, 0.1165, 0.0225, 0.0022],
  [-0.45, -0.88, 0.097, 0.021, 0.0],
  [-0.7, -1.12, 0.064, 0.0185, 0.0018],
  [0.3, 0.36, 0.1215, 0.0205, 0.0014],
  [0.46, 0.66, 0.1175, 0.021, 0.0],
  [0.62, 0.9, 0.097, 0.0205, 0.002],
  [0.8, 1.12, 0.064, 0.0185, 0.0],
  [-0.06, -0.17, 0.114, 0.0105, 0.0048],
  [0.2, 0.17, 0.131, 0.0185, -0.002],
];
function fringe() {
  return FRINGE_STRANDS.map(([a0, a1, tip, width, stand]) => {
    const low = Math.asin(clamp((tip - CENTER[1]) / (SHELL[1] + 0.008), -1, 1));
    const points = [0, 0.16, 0.34, 0.52, 0.7, 0.86, 1].map((t) => {
      const off = lerp(-0.004, 0.0085, smooth(0, 0.45, t)) - 0.0035 * smooth(0.7, 1, t) + stand * smooth(0.1, 0.5, t);
      return onHair(lerp(1.4, low, t ** 0.9), lerp(a0, a1, t ** 1.7), off);
    });
    return strand(points, { width: width * 1.1, thick: 0.0088, rows: 11, root: 0.4, fat: 0.5, tip: 1.35 });
  });
}

function sideLocks() {
  const lock = (shift, { width, length = 1, out = 0, curl = 0 }) => {
    const way = path(SIDE_POINTS);
    const points = [onHair(0.85, 1.12, 0.002), onHair(0.4, 1.27, 0.005), ...[0, 0.25, 0.5, 0.75, 1].map((t) => {
      const [x, y, z] = way(t * length);
      return [x + out + 0.006 * sin(t * 6 + shift) * (0.3 + t) + curl * t * t, y, z + shift * 0.014 * (1 - 0.4 * t)];
    })];
    return strand(points, { width, thick: 0.0105, rows: 16, root: 0.5, fat: 0.3, tip: 1.5, from: [0, 0.127, 0.0] });
  };
  return [
    lock(0.5, { width: 0.0185, length: 1 }),
    lock(-0.9, { width: 0.0175, length: 0.86, out: 0.004, curl: 0.008 }),
    lock(1.4, { width: 0.0105, length: 0.62, out: -0.004, curl: -0.006 }),
    // Over the ear and the end of the band.
    strand([onHair(0.62, 1.5, 0.003), onHair(0.3, 1.56, 0.011), onHair(0.02, 1.6, 0.0125), [0.121, 0.06, 0.002], [0.121, 0.0, 0.006], [0.113, -0.06, 0.02], [0.112, -0.105, 0.034]], { width: 0.021, thick: 0.0105, rows: 15, root: 0.5, fat: 0.3, tip: 1.5, from: [0, 0.127, -0.01] }),
  ];
}

/** Long hair: an inner sheet, and strands in two layers over it. */
function longHair() {
  const wave = (angle, y) => 0.006 * sin(y * 34 + angle * 3) * smooth(0, -0.25, y);
  const sheet = Mesh.grid(9, 21, false, (v, u) => {
    const y = lerp(0.13, -0.25, v);
    const open = lerp(1.42, 1.75, smooth(0, 0.5, v));
    const angle = lerp(open, 2 * PI - open, u);
    const place = backPoint(angle, y, -0.012 - 0.01 * smooth(0.1, -0.02, y));
    const pointed = 0.03 * abs(sin(u * PI * 7)) * smooth(0.8, 1, v);
    return [place[0], y + pointed, place[2]];
  });
  const strands = [];
  const layer = (count, from, to, { top, bottom, width, off, ragged, seed }) => {
    const next = random(seed);
    for (let k = 0; k < count; k++) {
      const angle = lerp(from, to, count === 1 ? 0.5 : k / (count - 1)) + (next() - 0.5) * 0.06;
      const middle = 1 - abs(angle - PI) / 1.3;
      const low = lerp(bottom + 0.05, bottom, clamp(middle)) + (next() - 0.5) * ragged;
      const sway = (next() - 0.5) * 0.16;
      const hanging = [0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => {
        const y = lerp(top, low, t);
        const around = angle + sway * t * t + 0.06 * sin(t * 6 + k * 2.4) * t;
        return backPoint(around, y, off + wave(angle, y) + 0.016 * smooth(0.7, 1, t));
      });
      // They begin under the strands of the crown.
      const points = [onHair(0.85, angle, -0.006), onHair(0.45, angle, -0.003), ...hanging];
      strands.push(strand(points, { width: width * lerp(0.9, 1.1, next()), thick: 0.012, rows: 16, root: 0.6, fat: 0.3, tip: 1.45, from: [0, 0.127, -0.012] }));
    }
  };
  layer(9, 1.85, 2 * PI - 1.85, { top: 0.1, bottom: -0.34, width: 0.034, off: -0.004, ragged: 0.05, seed: 7 });
  layer(7, 2.02, 2 * PI - 2.02, { top: 0.1, bottom: -0.26, width: 0.027, off: 0.004, ragged: 0.07, seed: 3 });
  return { sheet, strands };
}

/** A little lock that stands up. */
function ahoge() {
  const root = onHair(1.42, 0.5, -0.004);
  const points = [root, add(root, [0.004, 0.016, 0.012]), add(root, [0.016, 0.03, 0.03]), add(root, [0.034, 0.028, 0.045])];
  return strand(points, { width: 0.005, thick: 0.004, rows: 9, columns: 6, root: 0.9, fat: 0.3, tip: 1.5, from: [-0.05, 0.1, 0] });
}

// ---- bones ---------------------------------------------------------------------------------------

const inHead = (bones) => (p) => bones(scale(sub(p, HEAD.at), 1 / HEAD.size));
const only = (bone) => () => [[bone, 1]];

/** Long hair belongs to the two chains beside it, and to the head above them. */
function backBones([x, y, z]) {
  const angle = ((atan2(x, z + 0.012) % (2 * PI)) + 2 * PI) % (2 * PI);
  const at = clamp(BACK_ANGLES.findLastIndex((from) => angle >= from), 0, BACK_ANGLES.length - 2);
  const share = clamp((angle - BACK_ANGLES[at]) / (BACK_ANGLES[at + 1] - BACK_ANGLES[at]));
  const chain = (k) => hanging("head", `hairBack${k + 1}_`, BACK_HEIGHTS.slice(0, -1).map((h) => -h), 0.045)(-y);
  return blend([chain(at), 1 - smooth(0.15, 0.85, share)], [chain(at + 1), smooth(0.15, 0.85, share)]);
}
const sideBones = ([x, y]) => hanging("head", `hairSide${x > 0 ? "Left" : "Right"}_`, SIDE_POINTS.slice(0, -1).map(([, h]) => -h), 0.03)(-y);
function fringeBones([x, y]) {
  const name = FRINGE.reduce((best, [at, side]) => (abs(x - at) < abs(x - best[0]) ? [at, side] : best), FRINGE[0])[1];
  return hanging("head", `hairFringe${name}_`, [-0.185, -0.15], 0.025)(-y);
}

/** A band over the head from ear to ear. */
function band() {
  return Mesh.grid(30, 6, true, (v, u) => {
    const t = lerp(-1.8, 1.8, v);
    const center = onHair(PI / 2 - abs(t), t > 0 ? PI / 2 - 0.12 : -PI / 2 + 0.12, lerp(0.0065, 0.0125, smooth(0.1, 0.8, abs(t))) - 0.008 * smooth(1.35, 1.8, abs(t)));
    const away = norm(sub(center, CENTER));
    const angle = u * 2 * PI;
    return add(add(center, scale(away, 0.0036 * sin(angle))), [0, 0, 0.0092 * Math.sign(cos(angle)) * sqrt(abs(cos(angle)))]);
  }).outward();
}

/** A bow of two loops, two tails and a knot around 0, as wide as 2, facing +z. */
export function bow({ tails = 0.9, loops = 1 } = {}) {
  const loop = (side) =>
    Mesh.grid(8, 14, true, (v, u) => {
      const t = v;
      const high = lerp(0.16, 0.46, smooth(0, 0.75, t)) * arch(lerp(0, 1, t), 6, 0.4) + 0.01;
      const angle = u * 2 * PI;
      const fold = 1 - 0.18 * bellAt(cos(angle * 3), 1) * smooth(0.9, 0.1, t);
      const deep = lerp(0.12, 0.22, smooth(0, 0.6, t)) * arch(t, 6, 0.4) + 0.01;
      return [side * loops * (0.08 + 0.92 * t), high * sin(angle) * fold + 0.1 * t, deep * cos(angle) * fold];
    }).outward();
  const tail = (side) =>
    Mesh.grid(6, 6, true, (v, u) => {
      const angle = u * 2 * PI;
      const wide = lerp(0.1, 0.22, v);
      const notch = v > 0.99 ? 0.12 * (1 - abs(cos(angle))) : 0;
      return [side * (0.05 + tails * 0.5 * v) + wide * cos(angle), -tails * v - 0.05 + notch + side * wide * cos(angle) * 0.4, 0.035 * sin(angle) * (v > 0.99 || v < 0.01 ? 0.2 : 1)];
    }).outward();
  const knot = Mesh.grid(8, 12, true, (v, u) => {
    const [down, around] = [v * PI, u * 2 * PI];
    return [0.15 * sin(down) * sin(around), 0.19 * cos(down), 0.2 * sin(down) * cos(around)];
  });
  return { loops: [loop(1), loop(-1)], tails: tails > 0 ? [tail(1), tail(-1)] : [], knot };
}
const bellAt = (x, at) => Math.exp(-((x - at) ** 2) * 4);

export function hair() {
  strandNumber = 0;
  const { sheet, strands } = longHair();
  const side = sideLocks();
  const ribbon = bow({ tails: 0.8 });
  const placed = [...ribbon.loops, ...ribbon.tails, ribbon.knot].map((mesh, k, list) => {
    const center = onHair(PI / 2 - 0.6, PI / 2 - 0.16, 0.026);
    const lean = -0.5;
    const yaw = 0.35;
    mesh.material = k === list.length - 1 ? "trim" : "navy";
    return mesh.map(([x, y, z]) => {
      const [px, py, pz] = scale([x, y, z], 0.05);
      const [ax, ay] = [px * cos(lean) - py * sin(lean), px * sin(lean) + py * cos(lean)];
      return add(center, [ax * cos(yaw) + pz * sin(yaw), ay, pz * cos(yaw) - ax * sin(yaw)]);
    });
  });
  // The outermost first: what they cover need not be painted.
  const parts = [
    ahoge().with("hair", only("head")),
    ...fringe().map((mesh) => mesh.with("hair", inHead(fringeBones))),
    ...side.flatMap((mesh) => [mesh, mesh.mirror()]).map((mesh) => mesh.with("hair", inHead(sideBones))),
    ...crown().map((mesh) => mesh.with("hair", only("head"))),
    ...strands.reverse().map((mesh) => mesh.with("hair", inHead(backBones))),
    cap().with("hair", only("head")),
    sheet.flip().with("hairInside", inHead(backBones)),
    band().with("navy", only("head")),
    ...placed.map((mesh) => mesh.with(mesh.material, only("head"))),
  ];
  return parts.map((mesh) => mesh.map(fromHead));
}
