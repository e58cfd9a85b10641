/**
 * What the face does in each expression, as numbers; `face.mjs` makes morphs of them.
 *
 * Lids: `top` and `bottom` close toward the line that bends by `arc` (down below 0); `slant` lifts
 * the outer and lowers the inner half of the upper lid; `wide` opens it, `smile` lifts the lower one in its middle. Brows: `y`, `tilt` (inner
 * end up), `bend`, `near` (toward the nose). Mouth: see `MOUTH`. Iris: moved by `dx`, `dy` (dx to
 * her left), made larger by `size`. `left`/`right` change one eye or brow only.
 */

const REST = {
  lids: { top: 0, bottom: 0, arc: -0.0125, slant: 0, wide: 0, smile: 0 },
  brow: { y: 0, tilt: 0, bend: 0, near: 0 },
  iris: { dx: 0, dy: 0, size: 1 },
  /**
   * `w` half width, `up`/`down` how far the lips part, `corner` how high the corners lie, `skew`
   * lifts the left corner, `wave` bends the line like a wave, `x`/`y` move it, `pout` pushes it
   * forward, `flat` makes the opening squarer, `jaw` lowers the chin.
   */
  mouth: { w: 0.0146, up: 0, down: 0, corner: 0.004, skew: 0, wave: 0, x: 0, y: 0, pout: 0, flat: 0, jaw: 0, teeth: 0.003, tongue: 0 },
  blush: 0,
  gloom: 0,
  spark: 0,
  cheek: 0,
};

const shut = { top: 1, bottom: 1 };

/** Preset names of VRM first, then the others that Alice's emotions need. */
export const MORPHS = {
  aa: { mouth: { w: 0.0155, up: 0.0035, down: 0.012, corner: 0.001, jaw: 0.0065, tongue: 0.2 } },
  ih: { mouth: { w: 0.0185, up: 0.002, down: 0.0062, corner: 0.002, flat: 0.5, jaw: 0.002 } },
  ou: { mouth: { w: 0.0082, up: 0.0035, down: 0.0078, corner: 0, pout: 0.0035, jaw: 0.002, teeth: 0.0004 } },
  ee: { mouth: { w: 0.0195, up: 0.0028, down: 0.0095, corner: 0.0028, flat: 0.35, jaw: 0.003, tongue: 0.5 } },
  oh: { mouth: { w: 0.0102, up: 0.0045, down: 0.0125, corner: -0.0005, pout: 0.0022, jaw: 0.005, teeth: 0.001 } },
  blinkLeft: { left: { lids: shut } },
  blinkRight: { right: { lids: shut } },
  happy: {
    lids: { top: 0.1, bottom: 0.3, wide: 0.001, smile: 0.0055 },
    brow: { y: 0.004, bend: 0.002 },
    mouth: { w: 0.0225, up: -0.0006, down: 0.0098, corner: 0.0088, y: 0.001, tongue: 0.3, jaw: 0.0015 },
    cheek: 1,
  },
  angry: {
    lids: { top: 0.14, bottom: 0.14, slant: 0.0062 },
    brow: { y: -0.0052, tilt: -0.0105, near: 0.0035 },
    iris: { size: 0.94 },
    mouth: { w: 0.0132, corner: -0.0058, y: 0.0018, up: 0.0002, down: 0.0002 },
  },
  sad: {
    lids: { top: 0.22, bottom: 0.06, slant: -0.0075 },
    brow: { y: 0.002, tilt: 0.0122, near: 0.003 },
    iris: { dy: -0.0028 },
    mouth: { w: 0.0122, corner: -0.0064, y: 0.001 },
  },
  relaxed: {
    lids: { top: 0.54, bottom: 0.14, arc: 0.004, slant: -0.0016 },
    brow: { y: 0.0018, tilt: 0.003, bend: 0.001 },
    iris: { dy: -0.002 },
    mouth: { w: 0.0168, corner: 0.0056 },
  },
  surprised: {
    lids: { wide: 0.0046, bottom: -0.1 },
    brow: { y: 0.0098, bend: 0.0025 },
    iris: { size: 0.84 },
    mouth: { w: 0.0092, up: 0.0055, down: 0.0105, corner: -0.001, jaw: 0.004, teeth: 0.0012 },
  },
  thinking: {
    lids: { top: 0.16, bottom: 0.1 },
    iris: { dx: 0.0062, dy: 0.0062 },
    brow: { y: 0.001, tilt: -0.002 },
    left: { brow: { y: 0.0085, bend: 0.003 } },
    right: { brow: { y: -0.003, tilt: -0.004 } },
    mouth: { w: 0.0088, corner: -0.0022, x: 0.0052, skew: 0.0016, pout: 0.001 },
  },
  shy: {
    lids: { top: 0.26, bottom: 0.12, slant: -0.003 },
    iris: { dx: -0.0062, dy: -0.0052 },
    brow: { y: 0.003, tilt: 0.0088 },
    mouth: { w: 0.012, corner: 0.0016, wave: 0.0018 },
    blush: 1,
  },
  fearful: {
    lids: { wide: 0.0034, slant: -0.003, bottom: -0.04 },
    iris: { size: 0.68 },
    brow: { y: 0.0058, tilt: 0.0112, near: 0.003 },
    mouth: { w: 0.0142, up: 0.0022, down: 0.0066, corner: -0.0046, flat: 0.8, jaw: 0.002, teeth: 0.0034 },
    gloom: 1,
  },
  disgusted: {
    lids: { top: 0.34, bottom: 0.2, slant: 0.0028 },
    brow: { y: -0.0034, tilt: -0.0062, near: 0.002 },
    left: { brow: { y: 0.0022, tilt: -0.001 } },
    right: { lids: { top: 0.44, bottom: 0.32 } },
    iris: { size: 0.94, dx: -0.003 },
    mouth: { w: 0.0146, up: 0.0004, down: 0.0034, corner: -0.0062, skew: 0.0034, wave: 0.0008, teeth: 0.002 },
    gloom: 0.6,
  },
  excited: {
    lids: { wide: 0.0026, bottom: 0.12 },
    brow: { y: 0.0088, bend: 0.003 },
    iris: { size: 1.05 },
    mouth: { w: 0.0212, up: 0.0006, down: 0.0128, corner: 0.0064, y: 0.0012, jaw: 0.006, tongue: 0.3 },
    blush: 0.55,
    spark: 1,
    cheek: 0.6,
  },
  confused: {
    lids: { top: 0.05 },
    left: { brow: { y: 0.0095, bend: 0.002, tilt: 0.003 }, lids: { wide: 0.002 } },
    right: { brow: { y: -0.002, tilt: 0.0055 }, lids: { top: 0.22, bottom: 0.1 } },
    iris: { dx: 0.0022, dy: 0.0015, size: 0.94 },
    mouth: { w: 0.0096, up: 0.0018, down: 0.0042, corner: -0.0012, skew: -0.0024, x: -0.002, teeth: 0.0004 },
  },
  loving: {
    lids: { top: 1, bottom: 1, arc: 0.0105 },
    brow: { y: 0.0042, tilt: 0.003, bend: 0.002 },
    mouth: { w: 0.0195, corner: 0.0078, up: -0.0002, down: 0.0058, y: 0.0008, tongue: 0.3 },
    blush: 1,
    cheek: 0.7,
  },
};

/** How an expression lets others through: see VRM's `override…`. */
export const OVERRIDES = {
  relaxed: { overrideBlink: "blend" },
  // Lids that are drawn wide would not quite meet.
  surprised: { overrideBlink: "blend" },
  fearful: { overrideBlink: "blend" },
  disgusted: { overrideBlink: "blend" },
  loving: { overrideBlink: "block", overrideLookAt: "block" },
};

const over = (base, ...changes) => Object.assign({}, base, ...changes);

/** Everything the face needs to know about a morph; without a name, at rest. */
export function poseOf(name) {
  const change = MORPHS[name] ?? {};
  const eye = (side) => ({
    lids: over(REST.lids, change.lids, change[side]?.lids),
    brow: over(REST.brow, change.brow, change[side]?.brow),
    iris: over(REST.iris, change.iris, change[side]?.iris),
  });
  return {
    left: eye("left"),
    right: eye("right"),
    mouth: over(REST.mouth, change.mouth),
    blush: change.blush ?? 0,
    gloom: change.gloom ?? 0,
    spark: change.spark ?? 0,
    cheek: change.cheek ?? 0,
  };
}
