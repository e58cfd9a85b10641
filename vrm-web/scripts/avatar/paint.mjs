/** Textures, painted by code: `[r, g, b(, a)]` for each place, u to the right and v downwards. */
import { bell, clamp, lerp, mix, smooth } from "./math.mjs";
import { EYE } from "./eyeshape.mjs";
import { PALETTE as P } from "./palette.mjs";
import { picture } from "./png.mjs";

const { abs, sin, cos, hypot, atan2, PI } = Math;

const multiply = (a, b, share) => a.map((x, k) => lerp(x, (x * b[k]) / 255, share));

/** Skin of the head, as `faceUv` lays it. */
function facePaint(u, v) {
  const [x, y] = [(u - 0.5) * 0.24, 0.245 - v * 0.265];
  const side = abs(x);
  let color = P.skin.lit;
  // Blush under the eyes and, faint, on nose and chin.
  color = multiply(color, P.blush, 0.34 * bell(hypot((side - 0.062) / 0.02, (y - 0.0455) / 0.0115)));
  color = multiply(color, P.blush, 0.13 * bell(hypot(x / 0.009, (y - 0.0475) / 0.0055)));
  color = multiply(color, P.blush, 0.08 * bell(hypot(x / 0.02, (y + 0.008) / 0.008)));
  // A breath of colour around the eyes, more above.
  const [ex, ey] = [(side - EYE.x) / (EYE.w + 0.006), (y - EYE.y - 0.003) / 0.034];
  color = multiply(color, P.blush, 0.2 * smooth(1.15, 0.75, hypot(ex, ey)) * (ey > 0 ? 1 : 0.55));
  // Lips, and the soft shade beneath the lower one.
  color = multiply(color, P.lips, 0.5 * bell(hypot(x / 0.0095, (y - 0.0195) / 0.0036)));
  color = multiply(color, P.skin.shade, 0.35 * bell(hypot(x / 0.008, (y - 0.0085) / 0.0026)));
  // A small shadow on one side of and under the nose.
  color = multiply(color, P.skin.shade, 0.7 * bell(hypot((x - 0.0008) / 0.0028, (y - 0.0432) / 0.0014)));
  color = multiply(color, P.skin.shade, 0.16 * bell(hypot((x - 0.0052) / 0.0024, (y - 0.049) / 0.006)));
  // The fringe's shade.
  color = multiply(color, P.skin.shade, 0.5 * smooth(0.13, 0.16, y + 0.004 * sin(x * 140)) + 0.3 * smooth(0.07, 0.095, side) * smooth(0.02, 0.06, y));
  return color;
}

/** Hair: v from the crown to the tips, u across strands. */
function hairPaint(u, v, shade) {
  const streak = 0.5 + 0.3 * sin(u * 2 * PI * 7 + 1.3) + 0.2 * sin(u * 2 * PI * 12 + 4);
  let color = mix(P.hairRoot, P.hair, smooth(0.0, 0.2, v));
  color = mix(color, P.hairTip, smooth(0.5, 0.98, v + 0.03 * streak));
  color = multiply(color, P.hairShade, 0.2 * streak * streak + 0.16 * (0.5 + 0.5 * sin(u * 2 * PI * 2)));
  // The ring of light around the crown.
  const ring = 0.148 + 0.012 * sin(u * 2 * PI * 4) + 0.016 * (streak - 0.5);
  const wide = 0.02 + 0.012 * streak;
  const shine = smooth(wide, wide * 0.45, abs(v - ring)) * (0.35 + 0.65 * streak);
  if (shade) return multiply(mix(color, P.hairShine, shine * 0.25), P.hairShade, 0.85);
  return mix(color, P.hairShine, shine * 0.85);
}

function irisPaint(u, v) {
  const [x, y] = [u * 2 - 1, v * 2 - 1];
  const r = hypot(x, y);
  const angle = atan2(y, x);
  let color = mix(P.irisDark, P.iris, smooth(-0.55, 0.25, y));
  color = mix(color, P.irisLight, smooth(0.05, 0.85, y + 0.1 * cos(angle * 2)) * 0.95);
  const rays = 0.5 + 0.5 * sin(angle * 22) * sin(angle * 9 + 1);
  color = mix(color, P.irisLight, 0.16 * rays * smooth(0.3, 0.5, r) * smooth(0.95, 0.7, r) * smooth(-0.5, 0.6, y));
  // A crescent of light below the pupil.
  color = mix(color, [226, 252, 255], 0.7 * smooth(0.62, 0.72, hypot(x, y - 0.02)) * smooth(0.9, 0.78, r) * smooth(0.35, 0.75, y));
  color = mix(color, P.pupil, smooth(0.46, 0.37, hypot(x / 0.86, (y + 0.04) / 1.05)));
  color = mix(color, P.iris, 0.35 * smooth(0.24, 0.1, hypot(x, y - 0.2)));
  color = mix(color, P.irisDark, smooth(0.82, 0.95, r) * 0.92);
  return mix(color, P.pupil, 0.65 * smooth(-0.35, -0.85, y));
}
const eyeWhitePaint = (u, v) => mix(mix(P.eyeWhite, P.eyeShadow, smooth(0.44, 0.14, v)), P.eyeShadow, 0.35 * smooth(0.75, 1, v));

function blushPaint(u, v) {
  const [x, y] = [u * 2 - 1, v * 2 - 1];
  const soft = bell(hypot(x, y) / 0.62) * smooth(1, 0.75, hypot(x, y));
  const lines = [-0.36, 0, 0.36].reduce((most, at) => Math.max(most, smooth(0.075, 0.03, abs(x - at + y * 0.22)) * smooth(0.5, 0.36, abs(y))), 0);
  const a = clamp(0.85 * soft + 0.5 * lines);
  return [...mix([255, 120, 118], [232, 78, 88], lines), a * 255];
}
function gloomPaint(u, v) {
  const lines = smooth(0.35, 0.9, sin(u * 2 * PI * 13)) * smooth(0.75, 0.35, v) * 0.3;
  const a = (0.6 * smooth(0.98, 0.25, v) + lines) * smooth(0, 0.12, u) * smooth(1, 0.88, u);
  return [...P.gloom, clamp(a) * 255];
}
const skinPaint = (u, v) => multiply(multiply(P.skin.lit, P.skin.shade, 0.7 * smooth(0.24, 0.1, v)), P.blush, 0.13 * bell((v - 0.72) / 0.07));

const flat = (color) => ({ lit: () => color, shade: () => color });
/** `line(v)` gives how much of another tone lies there. */
const banded = (tone, other, line) => ({ lit: (u, v) => mix(tone.lit, other.lit, line(v)), shade: (u, v) => mix(tone.shade, other.shade, line(v)) });
const tone = (name, dark = 0) => ({ lit: (u, v) => mix(P[name].lit, P[name].shade, dark * v), shade: () => P[name].shade });
const between = (from, to, soft) => (v) => smooth(from - soft, from + soft, v) * smooth(to + soft, to - soft, v);
const folded = ({ lit, shade }) => ({ lit: (u, v) => mix(lit(u, v), shade(u, v), 0.8 * smooth(0.4, 0, u) * smooth(0, 0.2, v)), shade });
const stripes = (...list) => (v) => list.reduce((most, [from, to]) => Math.max(most, between(from, to, 0.006)(v)), 0);

/** Cells of a texture: where they lie, in pixels, and what is painted there. */
const column = (k, cell) => ({ at: [k * 16, 0, 16, 128], ...cell });
export const CLOTH = {
  size: [256, 128],
  cells: {
    dress: column(0, tone("dress", 0.25)),
    // u runs from the fold of a pleat to its middle and back.
    skirt: column(1, folded(banded(P.skirt, P.white, stripes([0.8, 0.845], [0.875, 0.892])))),
    lining: column(2, tone("lining")),
    white: column(3, tone("white")),
    navy: column(4, tone("navy")),
    trim: column(5, tone("trim")),
    gold: column(6, tone("gold")),
    shoe: column(7, tone("shoe")),
    sole: column(8, tone("sole")),
    sock: column(9, banded(P.sock, P.trim, stripes([0.045, 0.075], [0.095, 0.108]))),
  },
};
const swatch = (k, color) => ({ at: [128 + (k % 8) * 16, 96 + Math.floor(k / 8) * 16, 16, 16], ...flat(color) });
export const LINES = {
  size: [256, 128],
  cells: {
    iris: { at: [0, 0, 128, 128], lit: irisPaint },
    eyeWhite: { at: [128, 0, 64, 64], lit: eyeWhitePaint },
    mouth: { at: [192, 0, 16, 64], lit: (u, v) => mix(P.mouth, P.mouthDeep, smooth(0.2, 0.85, v)) },
    tongue: { at: [208, 0, 16, 64], lit: (u, v) => mix(multiply(P.tongue, P.mouth, 0.5), P.tongue, smooth(0.2, 0.8, v)) },
    ...Object.fromEntries(["glint", "lash", "lashSoft", "crease", "rim", "brow", "lip", "lipSoft", "tooth"].map((name, k) => [name, swatch(k, P[name])])),
  },
};
export const OVERLAY = {
  size: [128, 64],
  cells: {
    blush: { at: [0, 0, 64, 64], lit: blushPaint },
    gloom: { at: [64, 0, 64, 64], lit: gloomPaint },
  },
};
export const HAIR = {
  size: [256, 256],
  cells: {
    hair: { at: [0, 0, 240, 256], wrap: true, lit: (u, v) => hairPaint(u, v, false), shade: (u, v) => hairPaint(u, v, true) },
    hairInside: { at: [240, 0, 16, 256], lit: (u, v) => mix(mix(P.hairInside.shade, P.hairInside.lit, 0.35 + 0.65 * smooth(0.42, 0.72, v)), P.hairTip, 0.35 * v), shade: () => P.hairInside.shade },
  },
};

/** A picture of cells, in light or in shade. */
function atlas({ size: [width, height], cells }, which, alpha = false) {
  const list = Object.values(cells);
  return picture(width, height, (u, v) => {
    const [px, py] = [u * width, v * height];
    const cell = list.find(({ at: [x, y, w, h] }) => px >= x && px < x + w && py >= y && py < y + h);
    if (!cell) return alpha ? [0, 0, 0, 0] : [128, 128, 128];
    const [x, y, w, h] = cell.at;
    return (cell[which] ?? cell.lit)((px - x) / w, (py - y) / h);
  }, alpha);
}
/** From a part's texture place to the picture's; half a pixel of each cell's rim is left alone. */
export function placed({ size: [width, height], cells }, name, [u, v]) {
  const { at: [x, y, w, h], wrap } = cells[name];
  const across = wrap ? u - Math.floor(u) : clamp(u);
  return [(x + lerp(0.5, w - 0.5, across)) / width, (y + lerp(0.5, h - 0.5, clamp(v))) / height];
}

export function textures() {
  return {
    face: picture(384, 384, facePaint),
    skin: picture(4, 128, skinPaint),
    hair: atlas(HAIR, "lit"),
    hairShade: atlas(HAIR, "shade"),
    cloth: atlas(CLOTH, "lit"),
    clothShade: atlas(CLOTH, "shade"),
    lines: atlas(LINES, "lit"),
    overlay: atlas(OVERLAY, "lit", true),
  };
}
