/** The outfit: a sky-blue dress with a white sailor collar, puff sleeves with white cuffs, belt and bow, stockings and shoes. */
import { add, bell, curve, lerp, path, smooth } from "./math.mjs";
import { ellipsoid, Mesh, tube } from "./mesh.mjs";
import { arm, ARM_Y, foot, leg, LEG, trunk } from "./body.mjs";
import { bow } from "./hair.mjs";
import { blend, hanging, SKIRT, skirtRadius } from "./skeleton.mjs";

const { sin, cos, abs, atan2, hypot, PI, sqrt } = Math;

const only = (bone) => () => [[bone, 1]];
const both = (mesh) => [mesh, mesh.mirror()];

// ---- dress ---------------------------------------------------------------------------------------

const table = (rows, k) => curve(rows.map((row) => [row[0], row[k]]));
/** Height; half width; depth in front, behind; forward shift. */
const TRUNK = [
  [0.86, 0.083, 0.068, 0.072, 0],
  [0.9, 0.0765, 0.0625, 0.066, 0],
  [0.94, 0.0765, 0.064, 0.064, 0.001],
  [0.99, 0.085, 0.073, 0.067, 0.002],
  [1.035, 0.0965, 0.0835, 0.07, 0.003],
  [1.07, 0.103, 0.084, 0.072, 0.002],
  [1.105, 0.107, 0.073, 0.07, 0],
  [1.135, 0.102, 0.06, 0.062, -0.003],
  [1.155, 0.082, 0.05, 0.052, -0.005],
  [1.172, 0.05, 0.043, 0.043, -0.006],
  [1.182, 0.0395, 0.039, 0.039, -0.006],
];
const [rx, front, back, shift] = [1, 2, 3, 4].map((k) => table(TRUNK, k));
const bust = (x, y) => 0.007 * bell(hypot((abs(x) - 0.042) / 0.034, (y - 1.045) / 0.036));
/** A place on the bodice, by angle and height. */
const onTrunk = (angle, y, off = 0) => {
  const [s, c] = [sin(angle), cos(angle)];
  const p = 0.92;
  const x = (rx(y) + off) * Math.sign(s) * abs(s) ** p;
  const deep = (c > 0 ? front(y) : back(y)) + off;
  return [x, y, shift(y) + deep * Math.sign(c) * abs(c) ** p + (c > 0 ? bust(x, y) : 0)];
};

function bodice() {
  return Mesh.grid(15, 28, true, (v, u) => onTrunk(u * 2 * PI, lerp(1.182, 0.875, v))).with("dress", trunk);
}

/** The belt, wider in front where it ends in a point. */
function belt() {
  return Mesh.grid(6, 32, true, (v, u) => {
    const angle = u * 2 * PI;
    const t = lerp(-1, 1, v);
    const peak = bell(Math.min(abs(angle), abs(angle - 2 * PI)) / 0.32);
    const y = 0.9125 - t * (0.0185 + 0.011 * peak) + 0.002 * peak;
    const bulge = 0.0055 * sqrt(Math.max(0, 1 - t * t * 0.92));
    return onTrunk(angle, y, bulge);
  }).with("navy", trunk);
}

const PLEATS = 18;
/** Pleats: one side longer than the other, deeper toward the hem. */
const pleat = (angle, v) => {
  const t = (((angle / (2 * PI)) * PLEATS) % 1 + 1) % 1;
  const saw = t < 0.62 ? t / 0.62 : (1 - t) / 0.38;
  return 1 + (0.056 * saw - 0.032) * smooth(0.02, 0.75, v);
};
const skirtBones = ([x, y, z]) => {
  const turn = ((atan2(x, z) / (2 * PI)) * SKIRT.chains + SKIRT.chains) % SKIRT.chains;
  const [k, share] = [Math.floor(turn), turn % 1];
  const chain = (index) => hanging("hips", `skirt${(index % SKIRT.chains) + 1}_`, [-0.86, -0.74], 0.05)(-y);
  const soft = smooth(0, 1, share);
  return blend([chain(k), 1 - soft], [chain(k + 1), soft]);
};

function skirtAt(v, angle, inner = 0) {
  const y = lerp(SKIRT.top, SKIRT.bottom, v);
  const [sx, sz] = skirtRadius(y);
  const w = pleat(angle, v);
  return [(sx * w - inner) * sin(angle), y, (sz * w - inner) * cos(angle)];
}
function skirt() {
  const columns = PLEATS * 5;
  const outer = Mesh.grid(7, columns, true, (v, u) => skirtAt(v, u * 2 * PI))
    .uv(([u, v]) => [1 - abs(2 * ((u * PLEATS) % 1) - 1), v])
    .with("skirt", skirtBones);
  const hem = Mesh.grid(1, columns, true, (v, u) => skirtAt(1, u * 2 * PI, 0.004 * v))
    .uv(([u]) => [u, 0.99])
    .with("skirt", skirtBones);
  const lining = Mesh.grid(4, 36, true, (v, u) => {
    // Inside the deepest folds.
    const y = lerp(SKIRT.top, SKIRT.bottom, lerp(0.25, 1, v));
    const [sx, sz] = skirtRadius(y).map((r) => r * 0.962 - 0.002);
    return [sx * sin(u * 2 * PI), y, sz * cos(u * 2 * PI)];
  })
    .flip()
    .with("lining", skirtBones);
  /** White frills that look out beneath. */
  const frill = (low, size, inner, phase) =>
    Mesh.grid(2, 64, true, (v, u) => {
      const angle = u * 2 * PI;
      const y = lerp(low + 0.07, low, v);
      const [sx, sz] = skirtRadius(Math.max(y, SKIRT.bottom));
      const w = 1 + size * v * sin(angle * 26 + phase);
      return [(sx * w - inner) * sin(angle), y + 0.003 * v * cos(angle * 26 + phase), (sz * w - inner) * cos(angle)];
    }).backed().with("white", skirtBones);
  return [outer, hem, lining, frill(0.556, 0.022, 0.014, 0)];
}

// ---- collar and tie ------------------------------------------------------------------------------

/**
 * The sailor collar: it stands at the neck, lies over the shoulders, comes to a V in front and hangs
 * square behind. `t` runs from the neck to its edge.
 */
function collarAt(angle, t, off) {
  const away = abs(((angle + PI) % (2 * PI)) - PI);
  const behind = smooth(1.9, 2.5, away);
  const ahead = smooth(0.85, 0.2, away);
  // How low its edge hangs, and how far it reaches to the side.
  const low = lerp(1.1, 1.062, behind) - 0.028 * ahead;
  const start = 1.186 - 0.016 * smooth(0.7, 0, away);
  const y = lerp(start, low, t ** 1.15);
  const narrow = 1 - 0.42 * ahead * t;
  const place = onTrunk(angle, Math.min(y, 1.181), off + 0.004 * sin(t * PI) + 0.003 * t);
  const stand = y > 1.181 ? (y - 1.181) * 0.25 : 0;
  return [place[0] * narrow + stand * sin(angle), y, place[2] + stand * cos(angle)];
}
function collar() {
  const sheet = (off, from, to, rows) => Mesh.grid(rows, 44, false, (v, u) => collarAt(lerp(0.07, 2 * PI - 0.07, u), lerp(from, to, v), off));
  return [sheet(0.0042, 0, 1, 7).backed(0.0016).with("white", collarBones), sheet(0.0054, 0.82, 0.9, 1).with("trim", collarBones)];
}
/** It lies on the shoulders and goes with them a little. */
const collarBones = (p) => {
  const side = p[0] > 0 ? "left" : "right";
  const out = 0.45 * smooth(0.05, 0.1, abs(p[0]));
  return blend([trunk(p), 1 - out], [[[`${side}Shoulder`, 1]], out]);
};

function tie() {
  const { loops, knot } = bow({ tails: 0 });
  const put = (mesh) => mesh.map(([x, y, z]) => add([0, 1.103, 0.088], [x * 0.044, y * 0.05, z * 0.036 + 0.004 * abs(x)])).with("navy", only("upperChest"));
  const tail = (side) =>
    tube(path([[0.004 * side, 1.1, 0.089], [0.02 * side, 1.062, 0.1], [0.031 * side, 1.02, 0.1], [0.036 * side, 0.995, 0.097]]), (v) => [lerp(0.008, 0.017, v), 0.0022 * (v > 0.97 ? 0.3 : 1)], { rows: 9, columns: 8, side: () => [1, 0.25 * side, 0] })
      .with("navy", ([, y]) => hanging("upperChest", side > 0 ? "tieLeft_" : "tieRight_", [-1.09, -1.055], 0.02)(-y));
  return [...loops.map(put), put(knot), tail(1), tail(-1), brooch([0, 1.103, 0.0965], 0.0105, "upperChest")];
}

/** A golden star. */
function brooch(center, size, bone) {
  const mesh = new Mesh();
  const points = 10;
  mesh.positions.push(add(center, [0, 0, size * 0.45]));
  for (let k = 0; k < points; k++) {
    const r = size * (k % 2 ? 0.52 : 1);
    const angle = (k / points) * 2 * PI;
    mesh.positions.push(add(center, [r * sin(angle), r * cos(angle), 0]));
  }
  mesh.positions.push(add(center, [0, 0, -size * 0.3]));
  for (let k = 0; k < points; k++) {
    const [a, b] = [1 + k, 1 + ((k + 1) % points)];
    mesh.triangle(0, b, a);
    mesh.triangle(points + 1, a, b);
  }
  mesh.uvs = mesh.positions.map(() => [0.5, 0.5]);
  return mesh.with("gold", only(bone));
}
const button = (angle, y) => {
  const center = onTrunk(angle, y, 0.0035);
  return ellipsoid(center, [0.0052, 0.0052, 0.0035], 6, 10).with("gold", trunk);
};

/** The large bow at her back. */
function backBow() {
  const { loops, knot } = bow({ tails: 0 });
  const put = (mesh) => mesh.map(([x, y, z]) => [x * 0.098, 0.916 + y * 0.1, -0.078 - z * 0.06 - 0.012 * abs(x)]);
  const tail = (side) =>
    tube(path([[0.008 * side, 0.91, -0.082], [0.042 * side, 0.83, -0.135], [0.066 * side, 0.74, -0.178], [0.078 * side, 0.67, -0.2]]), (v) => [lerp(0.014, 0.033, v), 0.003 * (v > 0.97 ? 0.3 : 1)], { rows: 12, columns: 8, side: () => [1, 0.25 * side, 0] }).with(
      "navy",
      ([, y]) => hanging("hips", side > 0 ? "bowLeft_" : "bowRight_", [-0.885, -0.8], 0.04)(-y),
    );
  const waist = () => [["spine", 0.5], ["hips", 0.5]];
  return [...[...loops, knot].map((mesh) => put(mesh).outward().with("navy", waist)), tail(1), tail(-1)];
}

// ---- sleeves -------------------------------------------------------------------------------------

function sleeves() {
  const r = curve([[0.07, 0.025], [0.088, 0.038], [0.115, 0.0545], [0.145, 0.059], [0.175, 0.051], [0.2, 0.0365]]);
  const puff = Mesh.grid(10, 30, true, (v, u) => {
    const x = lerp(0.07, 0.2, v);
    const angle = u * 2 * PI;
    const gather = 1 + 0.035 * cos(angle * 10) * (smooth(0.15, 0.2, x) + 0.8 * smooth(0.115, 0.08, x));
    const y = r(x) * gather * cos(angle);
    return [x + 0.01 * cos(angle) * smooth(0.15, 0.07, x) * -1, ARM_Y + 0.001 + y * (y > 0 ? 0.92 : 1.02), r(x) * 0.98 * gather * sin(angle)];
  })
    .outward()
    .with("dress", arm);
  const cuff = Mesh.grid(4, 20, true, (v, u) => {
    const angle = u * 2 * PI;
    const t = lerp(-1, 1, v);
    const radius = 0.0345 + 0.0045 * sqrt(Math.max(0, 1 - t * t * 0.95));
    return [0.204 + 0.0095 * t, ARM_Y + radius * cos(angle), radius * sin(angle)];
  })
    .outward()
    .with("white", arm);
  /** A band with a frill at the wrist. */
  const wrist = Mesh.grid(4, 20, true, (v, u) => {
    const angle = u * 2 * PI;
    const t = lerp(-1, 1, v);
    const radius = 0.0195 + 0.0042 * sqrt(Math.max(0, 1 - t * t * 0.95));
    return [0.374 + 0.008 * t, ARM_Y - 0.0018 + radius * cos(angle), 0.0035 + radius * 1.06 * sin(angle)];
  })
    .outward()
    .with("navy", arm);
  const frill = Mesh.grid(2, 48, true, (v, u) => {
    const angle = u * 2 * PI;
    const radius = lerp(0.0205, 0.0275, v) * (1 + 0.07 * v * sin(angle * 12));
    return [lerp(0.372, 0.354, v), ARM_Y - 0.0018 + radius * cos(angle), 0.0035 + radius * sin(angle)];
  })
    .outward()
    .backed()
    .with("white", arm);
  return [puff, cuff, wrist, frill].flatMap(both);
}

// ---- legs ----------------------------------------------------------------------------------------

function stockings() {
  const sock = Mesh.grid(12, 14, true, (v, u) => {
    const y = lerp(0.505, 0.06, v);
    const { r, x, z } = LEG.at(y);
    const angle = u * 2 * PI;
    const thick = 0.0022 + 0.0016 * smooth(0.47, 0.5, y);
    return [x + (r + thick) * sin(angle), y, z + (r + thick) * 1.02 * cos(angle)];
  }).with("sock", leg);
  const rim = Mesh.grid(1, 14, true, (v, u) => {
    const { r, x, z } = LEG.at(0.505);
    const angle = u * 2 * PI;
    const radius = r + lerp(-0.001, 0.0038, v);
    return [x + radius * sin(angle), 0.505 + 0.0015 * (1 - v), z + radius * 1.02 * cos(angle)];
  }).uv(([u]) => [u, 0]).with("sock", leg);
  return [sock, rim].flatMap(both);
}

function shoes() {
  const outline = (angle) => {
    const [s, c] = [sin(angle), cos(angle)];
    const toe = c > 0 ? 1 : 0;
    const wide = 0.036 + 0.002 * c;
    const long = toe ? 0.098 : 0.052;
    return [wide * Math.sign(s) * abs(s) ** 0.85, long * Math.sign(c) * abs(c) ** (toe ? 0.8 : 0.9)];
  };
  const upper = Mesh.grid(6, 20, true, (v, u) => {
    const angle = u * 2 * PI;
    const [x, z] = outline(angle);
    const top = smooth(0.055, -0.02, z);
    const high = lerp(0.058, 0.07, top);
    // A dome over the toes, open at the ankle.
    const close = sqrt(Math.max(0, 1 - v ** 2.2));
    const y = 0.016 + (high - 0.016) * sin((v * PI) / 2);
    return [0.0635 + x * lerp(0.12, 1, close), y, 0.006 + z * lerp(0.1, 1, close) - 0.01 * v];
  });
  /** Height and size of the sole's rings, from the rim to the middle beneath. */
  const rings = [[0.0205, 0.97], [0.0195, 1.05], [0.006, 1.05], [0.0005, 1.01], [0.0005, 0.5], [0.0005, 0]];
  const sole = Mesh.grid(rings.length - 1, 20, true, (v, u) => {
    const [x, z] = outline(u * 2 * PI);
    const [y, size] = rings[Math.round(v * (rings.length - 1))];
    return [0.0635 + x * size, y, 0.006 + z * size];
  });
  const strap = Mesh.grid(14, 6, true, (v, u) => {
    const around = lerp(-1.9, 1.9, v);
    const angle = u * 2 * PI;
    const center = [0.0635 + 0.0305 * sin(around), 0.07 + 0.004 * cos(around), -0.004 + 0.037 * cos(around)];
    return add(center, [0.0028 * cos(angle) * sin(around), 0.0072 * sin(angle), 0.0028 * cos(angle) * cos(around)]);
  }).outward();
  const buckle = ellipsoid([0.0635 + 0.031, 0.071, 0.004], [0.004, 0.0055, 0.0055], 6, 8);
  return [
    upper.outward().with("shoe", foot),
    sole.outward().with("sole", foot),
    strap.with("shoe", foot),
    buckle.with("gold", foot),
  ].flatMap(both);
}

export function outfit() {
  return [
    bodice(),
    belt(),
    ...skirt(),
    ...collar(),
    ...tie(),
    button(0, 1.02),
    button(0, 0.985),
    button(0, 0.95),
    ...backBow(),
    ...sleeves(),
    ...stockings(),
    ...shoes(),
  ];
}
