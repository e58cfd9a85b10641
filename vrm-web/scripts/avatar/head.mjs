/** The head: its surface, and everything that is painted on it and moves. */
import { add, along, clamp, lerp, norm, Part, scale, smooth, sub } from "./geometry.mjs";

const { abs, sqrt, sin, cos, PI, sign } = Math;

const CENTER = [0, 1.13, 0];
const [RX, RY, RZ] = [0.142, 0.147, 0.134];

/** Width, depth and forward shift of the skull at height t: 1 crown, −1 chin. */
function profile(t) {
  if (t >= 0) return [sqrt(1 - t * t), sqrt(1 - t * t), 0];
  const u = -t;
  return [sqrt(Math.max(0, 1 - u ** 2.5)) * (1 - 0.2 * u * u), sqrt(Math.max(0, 1 - u ** 2.8)) * (1 - 0.1 * u), 0.014 * u];
}

/** A point of the head `off` metres outside its skin; `angle` 0 is the front, positive to her left. */
export function onHead(t, angle, off = 0) {
  const [w, d, shift] = profile(clamp(t, -1, 1));
  const point = [w * RX * sin(angle), CENTER[1] + t * RY, shift + d * RZ * cos(angle)];
  const out = norm([point[0] / RX ** 2, (point[1] - CENTER[1]) / RY ** 2, (point[2] - shift) / RZ ** 2]);
  return add(point, scale(out, off));
}

/** The skin in front at (x, y), moved `off` outward. */
export function onFace(x, y, off) {
  const t = clamp((y - CENTER[1]) / RY, -0.999, 0.999);
  const [w, d, shift] = profile(t);
  const across = clamp(x / (w * RX), -0.995, 0.995);
  const point = [x, y, shift + d * RZ * sqrt(1 - across * across)];
  return add(point, scale(faceNormal(x, y), off));
}

function faceNormal(x, y) {
  const h = 1e-3;
  const z = (px, py) => {
    const t = clamp((py - CENTER[1]) / RY, -0.999, 0.999);
    const [w, d, shift] = profile(t);
    const across = clamp(px / (w * RX), -0.995, 0.995);
    return shift + d * RZ * sqrt(1 - across * across);
  };
  return norm([-(z(x + h, y) - z(x - h, y)) / (2 * h), -(z(x, y + h) - z(x, y - h)) / (2 * h), 1]);
}

export function skull() {
  return Part.grid(28, 36, true, (v, u) => onHead(cos(v * PI), u * 2 * PI));
}

// ---- what is painted on the face -----------------------------------------------------------------

export const MORPHS = [
  "aa", "ih", "ou", "ee", "oh",
  "blinkLeft", "blinkRight",
  "happy", "angry", "sad", "relaxed", "surprised",
  "lookUp", "lookDown", "lookLeft", "lookRight",
];

/**
 * A painted piece. `place(u, v, morph)` gives the 2D place of a grid point, at rest (`morph` is
 * undefined) or in a morph; the piece lies `off` above the skin in all of them.
 */
function painted(material, off, columns, rows, place, mirrored = false) {
  const part = new Part();
  const points = [];
  for (let j = 0; j <= rows; j++) for (let i = 0; i <= columns; i++) points.push([i / columns, j / rows]);
  const at = ([u, v], morph) => onFace(...place(u, v, morph), off);
  part.positions = points.map((point) => at(point));
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const a = j * (columns + 1) + i;
      const [b, c, d] = [a + 1, a + columns + 1, a + columns + 2];
      // The mouth has no area while it is closed, so no triangle is left out here.
      // Strokes of her right side run from right to left and so the other way round.
      part.indices.push(...(mirrored ? [a, b, c, b, d, c] : [a, c, b, b, c, d]));
    }
  }
  part.normals = points.map((point) => faceNormal(...place(...point)));
  part.morphs = MORPHS.map((morph) => points.map((point, k) => sub(at(point, morph), part.positions[k])));
  part.material = material;
  return part;
}

const EYE = { x: 0.057, y: 1.098, w: 0.0325, up: 0.038, down: 0.03 };
/** How far the lids come from above and below, and how the closed line lies. */
const LIDS = {
  blink: [1, 0.12],
  happy: [0.3, 0.34],
  relaxed: [0.42, 0.08],
  sad: [0.2, 0.0],
  angry: [0.24, 0.1],
  surprised: [-0.12, -0.06],
};

const eyeTop = (s) => EYE.up * (1 - abs(s) ** 2.3) ** 0.62;
const eyeBottom = (s) => -EYE.down * (1 - abs(s) ** 2.6) ** 0.6;

function lids(side, morph) {
  if (morph === "blinkLeft") return side > 0 ? LIDS.blink : [0, 0];
  if (morph === "blinkRight") return side < 0 ? LIDS.blink : [0, 0];
  return LIDS[morph] ?? [0, 0];
}

/** Puts a height between the lids: what they cover is pressed to their edge. */
function underLids(side, s, y, morph) {
  const [top, bottom] = [eyeTop(s), eyeBottom(s)];
  const [fromTop, fromBottom] = lids(side, morph);
  const high = lerp(top, bottom, fromTop * (1 - 0.12 * (fromTop > 0.9 ? 1 : 0)));
  const low = lerp(bottom, top, fromBottom);
  return fromTop > 0 || fromBottom > 0 ? clamp(y, Math.min(low, high), high) : y + (high - top) * clamp((y + 0.01) / EYE.up);
}

const GAZE = { lookUp: [0, 0.009], lookDown: [0, -0.009], lookLeft: [0.011, 0], lookRight: [-0.011, 0] };

function eye(side) {
  const cx = EYE.x * side;
  const disc = (material, off, [dx, dy], [rx, ry]) =>
    painted(material, off, 14, 6, (u, v, morph) => {
      const across = -cos(u * PI);
      const [gx, gy] = GAZE[morph] ?? [0, 0];
      const x = dx + gx + rx * across;
      const edge = ry * sqrt(Math.max(0, 1 - across * across));
      const s = clamp(x / EYE.w, -1, 1);
      const y = clamp(dy + gy + lerp(edge, -edge, v), eyeBottom(s), eyeTop(s) + 0.001);
      return [cx + clamp(x, -EYE.w, EYE.w), EYE.y + underLids(side, s, y, morph)];
    });
  const stroke = (material, off, columns, line) =>
    painted(material, off, columns, 2, (u, v, morph) => {
      const [x, y, thick] = line(u, morph);
      return [cx + x * side, EYE.y + y + lerp(thick, -thick, v)];
    }, side < 0);
  return [
    painted("eyeWhite", 0.001, 16, 6, (u, v, morph) => {
      const s = -cos(u * PI);
      return [cx + s * EYE.w, EYE.y + underLids(side, s, lerp(eyeTop(s), eyeBottom(s), v), morph)];
    }),
    disc("irisRim", 0.0014, [-0.002 * side, 0.003], [0.0228, 0.0325]),
    disc("iris", 0.0017, [-0.002 * side, 0.0015], [0.0198, 0.0285]),
    disc("irisLight", 0.002, [-0.002 * side, -0.0125], [0.0145, 0.0125]),
    disc("lash", 0.0023, [-0.002 * side, 0.004], [0.0105, 0.0165]),
    disc("shine", 0.0028, [-0.0095, 0.016], [0.0068, 0.0085]),
    disc("shine", 0.0028, [0.0075, -0.0125], [0.0038, 0.0045]),
    // The upper lash follows the upper lid and ends in a small wing.
    stroke("lash", 0.0032, 18, (u, morph) => {
      const s = lerp(-1, 1.08, u);
      const inside = clamp(s, -1, 1);
      const y = underLids(side, inside, eyeTop(inside), morph) - smooth(1, 1.08, s) * 0.001;
      return [s * EYE.w + smooth(0.8, 1.08, s) * 0.004, y + 0.001, lerp(0.0012, 0.0042, smooth(0, 0.75, u)) * (1 - smooth(0.93, 1, u) * 0.8)];
    }),
    stroke("lashSoft", 0.0028, 10, (u, morph) => {
      const s = lerp(-0.45, 0.85, u);
      return [s * EYE.w, underLids(side, s, eyeBottom(s), morph), 0.0011 * sin(u * PI)];
    }),
    stroke("brow", 0.0035, 12, (u, morph) => {
      const inner = 1 - u;
      const [lift, tilt] = { happy: [0.005, 0], angry: [-0.007, -0.012], sad: [0.002, 0.013], relaxed: [0.002, 0.003], surprised: [0.013, 0] }[morph] ?? [0, 0];
      const pinch = morph === "angry" ? -0.004 * inner : 0;
      const x = lerp(-0.026, 0.031, u) + pinch;
      return [x, 0.0605 + 0.006 * sin(u * PI * 0.9) + lift + tilt * (inner - 0.35), 0.0026 * (0.35 + 0.65 * sin(PI * clamp(u * 0.8 + 0.12)))];
    }),
  ];
}

/** Half width, opening up and down, and how the corners lie, of each mouth. */
const MOUTH = { y: 1.032 };
const REST = [0.019, 0, 0, 0.0035];
const SHAPES = {
  aa: [0.022, 0.005, 0.027, 0.002],
  ih: [0.025, 0.003, 0.0095, 0.003],
  ou: [0.0095, 0.005, 0.011, 0],
  ee: [0.024, 0.004, 0.0145, 0.003],
  oh: [0.0145, 0.006, 0.022, 0],
  happy: [0.026, -0.001, 0.001, 0.0105],
  angry: [0.018, 0, 0, -0.0055],
  sad: [0.015, 0, 0, -0.006],
  relaxed: [0.023, 0, 0, 0.0075],
  surprised: [0.0095, 0.003, 0.007, 0],
};

function mouthPoint(s, v, morph) {
  const [w, up, down, corners] = SHAPES[morph] ?? REST;
  const arch = sqrt(Math.max(0, 1 - s * s));
  const bend = corners * (s * s - 0.3);
  return [s * w, MOUTH.y + lerp(up * arch, -down * arch ** 0.9, v) + bend];
}

function mouth() {
  const region = (material, off, [left, right], [from, to]) =>
    painted(material, off, 14, 3, (u, v, morph) => mouthPoint(lerp(left, right, u), lerp(from, to, v), morph));
  const lip = (v0) =>
    painted("lip", 0.0024, 16, 1, (u, v, morph) => {
      const s = -cos(u * PI);
      const [x, y] = mouthPoint(s, v0, morph);
      const thick = 0.0013 * (0.25 + 0.75 * sqrt(Math.max(0, 1 - s * s)));
      return [x, y + lerp(thick, -thick, v)];
    });
  return [
    region("mouth", 0.0012, [-1, 1], [0, 1]),
    region("tooth", 0.0016, [-0.72, 0.72], [0.02, 0.2]),
    region("tongue", 0.0016, [-0.62, 0.62], [0.62, 0.98]),
    lip(0),
    lip(1),
  ];
}

function blush(side) {
  // Three discs, one in the other: materials of VRM have no colours of points.
  return [["blushOuter", 0.0006, 1], ["blush", 0.0009, 0.78], ["blushInner", 0.0012, 0.5]].map(([material, off, size]) =>
    painted(material, off, 14, 4, (u, v) => {
      const across = -cos(u * PI);
      const edge = sqrt(Math.max(0, 1 - across * across));
      return [side * 0.086 + 0.0225 * size * across, 1.05 + 0.0125 * size * lerp(edge, -edge, v)];
    }),
  );
}

function nose() {
  return painted("nose", 0.001, 8, 3, (u, v) => {
    const across = -cos(u * PI);
    const edge = sqrt(Math.max(0, 1 - across * across));
    return [0.0034 * across, 1.0665 + 0.0022 * lerp(edge, -edge, v)];
  });
}

export function paint() {
  return [...blush(1), ...blush(-1), nose(), ...mouth(), ...eye(1), ...eye(-1)];
}

// ---- hair ----------------------------------------------------------------------------------------

/** Where the hair begins, as an angle from the front, at height t. */
const hairline = (t) => along([[-1, 2.1], [-0.62, 1.95], [-0.2, 1.62], [0.2, 1.32], [0.5, 0.95], [0.66, 0.45], [0.74, 0]], t);

export function cap() {
  return Part.grid(24, 40, false, (v, u) => {
    const t = lerp(0.9999, -0.72, v ** 0.9);
    const start = hairline(t);
    const angle = lerp(start, 2 * PI - start, u);
    const edge = Math.min(u, 1 - u);
    const off = 0.004 + 0.018 * smooth(0, 0.1, edge + (start < 0.05 ? 1 : 0));
    return onHead(t, angle, off);
  });
}

/** A lock that lies on the head from (t, angle) to (t, angle), as wide as `width` and pointed. */
function lock([t0, a0], [t1, a1], width, { off = 0.019, bend = 0, thick = 0.013, sharp = 0.75 } = {}) {
  const path = (v) => {
    const t = lerp(t0, t1, v);
    const angle = lerp(a0, a1, v) + bend * sin(v * PI);
    return onHead(t, angle, off * (0.55 + 0.45 * sin(PI * Math.min(1, v * 0.6 + 0.4))) + 0.004);
  };
  const step = 1e-3;
  return Part.grid(12, 10, true, (v, u) => {
    const ahead = norm(sub(path(Math.min(1, v + step)), path(Math.max(0, v - step))));
    const center = path(v);
    const out = norm(sub(center, CENTER));
    const wide = norm([ahead[1] * out[2] - ahead[2] * out[1], ahead[2] * out[0] - ahead[0] * out[2], ahead[0] * out[1] - ahead[1] * out[0]]);
    const size = (1 - v ** 2.2) ** sharp * (0.65 + 0.35 * smooth(0, 0.3, v));
    const angle = u * 2 * PI;
    const x = cos(angle) * width * size;
    const y = sin(angle) * thick * (0.35 + 0.65 * size) * (v > 0.98 ? 0.2 : 1);
    // Bent around the head, so that its edges lie on it.
    const sink = (x * x) / 0.3;
    return add(center, add(scale(wide, x), scale(out, y - sink)));
  }).outward();
}

export function bangs() {
  return Part.join(
    lock([0.9, 0.1], [0.25, -0.06], 0.036, { bend: -0.1 }),
    lock([0.9, 0.35], [0.3, 0.24], 0.034, { bend: 0.05 }),
    lock([0.9, -0.3], [0.3, -0.34], 0.034, { bend: -0.05 }),
    lock([0.88, 0.6], [0.2, 0.55], 0.036, { bend: 0.08 }),
    lock([0.88, -0.6], [0.22, -0.62], 0.036, { bend: -0.08 }),
    lock([0.84, 0.85], [0.02, 0.88], 0.036, { bend: 0.12 }),
    lock([0.84, -0.85], [0.04, -0.9], 0.036, { bend: -0.12 }),
    lock([0.78, 1.1], [-0.2, 1.14], 0.036, { bend: 0.1 }),
    lock([0.78, -1.1], [-0.2, -1.16], 0.036, { bend: -0.1 }),
  );
}

export function band() {
  return Part.grid(36, 8, true, (v, u) => {
    const around = lerp(-1.12, 1.12, v);
    const center = onHead(cos(around), sign(around) * (PI / 2 + 0.02), 0.026);
    const out = norm(sub(center, CENTER));
    const angle = u * 2 * PI;
    return add(add(center, scale(out, 0.006 * sin(angle))), [0, 0, 0.014 * cos(angle)]);
  }).flip();
}
