/** The body, the dress and the hair that hangs, each part with the bones that move it. */
import { add, along, clamp, ellipsoid, lerp, Part, rings, smooth, tube } from "./geometry.mjs";
import { band, bangs, cap, skull } from "./head.mjs";

const { sin, cos, PI, abs, atan2 } = Math;

/** Bones: parent and place in the rest pose (arms straight out). Names as in VRM, where VRM has one. */
export const BONES = [
  ["hips", null, [0, 0.66, 0]],
  ["spine", "hips", [0, 0.72, 0]],
  ["chest", "spine", [0, 0.81, 0]],
  ["neck", "chest", [0, 0.945, 0]],
  ["head", "neck", [0, 0.995, 0]],
  ...["left", "right"].flatMap((side) => {
    const x = side === "left" ? 1 : -1;
    return [
      [`${side}Shoulder`, "chest", [0.03 * x, 0.915, 0]],
      [`${side}UpperArm`, `${side}Shoulder`, [0.09 * x, 0.91, 0]],
      [`${side}LowerArm`, `${side}UpperArm`, [0.235 * x, 0.91, 0]],
      [`${side}Hand`, `${side}LowerArm`, [0.37 * x, 0.91, 0]],
      [`${side}UpperLeg`, "hips", [0.058 * x, 0.62, 0]],
      [`${side}LowerLeg`, `${side}UpperLeg`, [0.058 * x, 0.35, 0]],
      [`${side}Foot`, `${side}LowerLeg`, [0.058 * x, 0.07, 0]],
      [`${side}Toes`, `${side}Foot`, [0.058 * x, 0.02, 0.06]],
    ];
  }),
];
/** Bones of hair, which springs move: chains from the head. */
export const CHAINS = [
  ["hairLeft", [[0.137, 1.12, 0.035], [0.152, 1.01, 0.04], [0.146, 0.9, 0.05]]],
  ["hairRight", [[-0.137, 1.12, 0.035], [-0.152, 1.01, 0.04], [-0.146, 0.9, 0.05]]],
  ["hairBack", [[0, 1.08, -0.15], [0, 0.97, -0.165], [0, 0.85, -0.15]]],
];
for (const [name, points] of CHAINS) {
  points.forEach((point, k) => BONES.push([`${name}${k + 1}`, k === 0 ? "head" : `${name}${k}`, point]));
}

/** Weights along a chain of [bone, from]: each takes over smoothly around its beginning. */
function chain(value, steps, soft) {
  let weights = [[steps[0][0], 1]];
  for (const [bone, from] of steps.slice(1)) {
    const part = smooth(from - soft, from + soft, value);
    weights = [...weights.map(([name, weight]) => [name, weight * (1 - part)]), [bone, part]];
  }
  return weights.filter(([, weight]) => weight > 0.001);
}

const torso = ([, y]) => chain(y, [["hips", 0], ["spine", 0.735], ["chest", 0.82], ["neck", 0.955]], 0.03);
const arm = ([x]) => {
  const side = x > 0 ? "left" : "right";
  return chain(abs(x), [["chest", 0], [`${side}Shoulder`, 0.05], [`${side}UpperArm`, 0.095], [`${side}LowerArm`, 0.235], [`${side}Hand`, 0.37]], 0.02);
};
const leg = ([x, y]) => {
  const side = x > 0 ? "left" : "right";
  return chain(-y, [["hips", -9], [`${side}UpperLeg`, -0.62], [`${side}LowerLeg`, -0.35], [`${side}Foot`, -0.08]], 0.025);
};
const only = (bone) => () => [[bone, 1]];
const hanging = (name) => ([, y]) => chain(-y, [["head", -9], [`${name}1`, -1.1], [`${name}2`, -1.0]], 0.05);

const part = (material, shape, bones) => Object.assign(shape, { material, bones });
const both = (material, shape, bones) => [part(material, shape, bones), part(material, shape.mirror(), bones)];

const bodice = (y) => {
  const rx = along([[0.7, 0.083], [0.735, 0.074], [0.82, 0.085], [0.88, 0.094], [0.918, 0.088], [0.945, 0.055], [0.958, 0.04]], y);
  return [rx, rx * along([[0.7, 0.82], [0.85, 0.8], [0.92, 0.66], [0.958, 0.9]], y), 0.004];
};
const skirt = (y) => {
  const down = clamp((0.745 - y) / 0.36);
  const r = 0.073 + 0.155 * down ** 0.72 + 0.012 * sin(down * PI);
  return [r, r * 0.92, 0];
};
const pleats = (y, angle) => 1 + 0.035 * smooth(0.7, 0.42, y) * cos(angle * 14);

function dress() {
  const apronAt = (shape, from, to, wide, off, waves) =>
    Part.grid(14, 18, false, (v, u) => {
      const y = lerp(from, to, v);
      const [rx, rz, cz = 0] = shape(y);
      const angle = lerp(-wide(v), wide(v), u);
      const w = waves ? pleats(y, angle) : 1;
      const hem = waves ? 0.012 * smooth(0.7, 1, v) * abs(cos(u * PI * 5)) : 0;
      return [(rx * w + off) * sin(angle), y + hem, cz + (rz * w + off) * cos(angle)];
    });
  const bow = (center, size, turn, back) =>
    Part.join(
      ...[-1, 1].map((side) =>
        ellipsoid([0, 0, 0], [1, 0.62, 0.32], 10, 12).map(([x, y, z]) => {
          const pinch = 0.25 + 0.75 * smooth(-1, 0.5, x);
          return [side * (x + 0.95) * size, y * pinch * size, z * pinch * size];
        }),
      ).map((half, k) => (k === 0 ? half.flip() : half)),
      ellipsoid([0, 0, 0.08 * size * (back ? -1 : 1)], [0.34 * size, 0.38 * size, 0.34 * size], 8, 10),
    ).map(([x, y, z]) => add(center, [x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn), z]));
  return [
    part("dress", rings(0.958, 0.7, 16, 28, bodice), torso),
    part("dress", rings(0.745, 0.4, 18, 56, skirt, pleats), only("hips")),
    part("white", rings(0.415, 0.378, 4, 56, (y) => skirt(y).map((r) => r * 0.985), pleats), only("hips")),
    part("dressDark", rings(0.42, 0.66, 6, 40, (y) => skirt(y).map((r) => r * 0.97), pleats), only("hips")),
    part("white", apronAt(skirt, 0.735, 0.475, (v) => 0.75 + 0.12 * sin(v * PI), 0.006, true), only("hips")),
    part("white", apronAt(bodice, 0.915, 0.735, (v) => lerp(0.62, 0.8, v), 0.005, false), torso),
    part("white", rings(0.752, 0.724, 5, 28, (y) => {
      const [rx, rz] = bodice(0.735);
      const bulge = 0.007 * Math.sqrt(Math.max(0, 1 - ((y - 0.738) / 0.0141) ** 2));
      return [rx + bulge, rz + bulge, 0.004];
    }), torso),
    part("white", bow([0, 0.735, -0.085], 0.055, 0, true), only("hips")),
    // Collar.
    part("white", Part.grid(6, 28, true, (v, u) => {
      const angle = u * 2 * PI;
      const r = lerp(0.036, 0.075, v);
      const scallop = 1 + 0.05 * smooth(0.5, 1, v) * cos(angle * 8);
      return [r * scallop * sin(angle), lerp(0.962, 0.932, v ** 1.6), 0.004 + r * 0.8 * scallop * cos(angle)];
    }), torso),
    part("ribbon", bow([0, 0.925, 0.072], 0.017, 0, false), only("chest")),
    ...both("dress", ellipsoid([0, 0, 0], [0.058, 0.052, 0.054]).map(([x, y, z]) => {
      const folds = 1 + 0.05 * cos(atan2(y, z) * 9) * smooth(0.06, 0.02, abs(x));
      return [0.118 + x, 0.908 + y * folds, z * folds];
    }), arm),
    ...both("white", Part.grid(5, 18, true, (v, u) => {
      const angle = u * 2 * PI;
      const r = 0.031 + 0.004 * sin(v * PI);
      return [lerp(0.158, 0.178, v), 0.91 + r * cos(angle), r * sin(angle)];
    }).flip(), arm),
    part("ribbon", bow([0.07, 1.272, 0.03], 0.042, -0.42, false), only("head")),
  ];
}

function limbs() {
  const handY = 0.91;
  const finger = (z, length, lift, thick) =>
    tube((v) => [0.405 + v * length, handY + lift - 0.004 * v * v, z * (1 + 0.15 * v)], (v) => {
      const round = Math.sqrt(Math.max(0, 1 - (2 * Math.max(0, v - 0.5)) ** 4));
      return [thick * round, thick * round];
    }, { rows: 8, columns: 8, side: () => [0, 0, 1] });
  const hand = Part.join(
    ellipsoid([0.393, handY, 0], [0.032, 0.0125, 0.024], 10, 14),
    finger(0.0165, 0.03, 0, 0.0066),
    finger(0.0055, 0.034, 0, 0.0068),
    finger(-0.0055, 0.032, 0, 0.0066),
    finger(-0.016, 0.026, 0, 0.006),
    tube((v) => [0.38 + 0.026 * v, handY - 0.003, 0.018 + 0.021 * v], (v) => {
      const round = 0.0072 * Math.sqrt(Math.max(0, 1 - (2 * Math.max(0, v - 0.5)) ** 4));
      return [round, round];
    }, { rows: 8, columns: 8, side: () => [0, 1, 0] }),
  );
  const side = "left";
  return [
    part("skin", tube((v) => [0, lerp(0.93, 1.03, v), lerp(0, 0.004, v)], () => [0.033, 0.032], { rows: 6, columns: 18 }), ([, y]) => chain(y, [["chest", 0], ["neck", 0.945], ["head", 0.995]], 0.02)),
    ...both("skin", tube((v) => [lerp(0.1, 0.382, v), 0.91, 0], (v) => [lerp(0.029, 0.0185, smooth(0, 1, v)), lerp(0.029, 0.02, smooth(0, 1, v))], { rows: 18, columns: 14, side: () => [0, 1, 0] }), arm),
    ...both("skin", hand, () => [[`${side}Hand`, 1]]).map((piece, k) => Object.assign(piece, { bones: only(k === 0 ? "leftHand" : "rightHand") })),
    ...both("skin", tube((v) => [0.058, lerp(0.66, 0.2, v), 0], (v) => [lerp(0.052, 0.032, v), lerp(0.05, 0.033, v)], { rows: 16, columns: 16 }), leg),
    ...both("white", tube((v) => [0.058, lerp(0.27, 0.05, v), lerp(0, -0.006, v)], (v) => {
      const r = along([[0, 0.0375], [0.06, 0.038], [0.12, 0.0345], [0.35, 0.036], [1, 0.027]], v);
      return [r, r];
    }, { rows: 14, columns: 16 }), leg),
    ...both("shoe", ellipsoid([0.058, 0.034, 0.024], [0.04, 0.036, 0.07], 14, 20).map(([x, y, z]) => [x, Math.max(y, 0.004), z]), ([x]) => [[x > 0 ? "leftFoot" : "rightFoot", 1]]),
    ...both("shoe", tube((v) => [0.058 + 0.034 * cos(v * 2 * PI), 0.072, 0.003 + 0.034 * sin(v * 2 * PI)], () => [0.006, 0.008], { rows: 20, columns: 8, side: () => [0, 1, 0] }), ([x]) => [[x > 0 ? "leftFoot" : "rightFoot", 1]]),
  ];
}

function hair() {
  const back = Part.grid(20, 40, false, (v, u) => {
    const y = lerp(1.19, 0.83, v) + 0.018 * smooth(0.75, 1, v) * abs(sin(u * PI * 5));
    const open = lerp(1.45, 1.75, smooth(0.2, 1, v));
    const angle = lerp(open, 2 * PI - open, u);
    const rx = along([[0, 0.155], [0.3, 0.168], [0.6, 0.158], [1, 0.118]], v);
    const rz = along([[0, 0.15], [0.3, 0.172], [0.7, 0.165], [1, 0.125]], v);
    const strands = 1 + 0.018 * cos(angle * 20) * smooth(0.1, 0.6, v);
    return [rx * strands * sin(angle), y, rz * strands * cos(angle)];
  });
  const inner = Part.grid(12, 24, false, (v, u) => {
    const y = lerp(1.1, 0.86, v);
    const angle = lerp(1.6, 2 * PI - 1.6, u);
    const rx = along([[0, 0.14], [0.5, 0.15], [1, 0.11]], v);
    return [rx * sin(angle), y, 0.008 + rx * cos(angle)];
  }).flip();
  const sideLock = tube((v) => [
    along([[0, 0.128], [0.35, 0.153], [0.75, 0.152], [1, 0.138]], v) + 0.004 * sin(v * 7),
    lerp(1.2, 0.9, v),
    along([[0, 0.045], [0.3, 0.052], [0.7, 0.048], [1, 0.062]], v),
  ], (v) => {
    const size = (1 - v ** 2.4) ** 0.7 * (0.7 + 0.3 * smooth(0, 0.25, v));
    return [0.016 * size + 0.0006, 0.032 * size + 0.0006];
  }, { rows: 16, columns: 12 });
  return [
    part("hair", cap(), only("head")),
    part("hair", bangs(), only("head")),
    part("hair", back, ([x, y]) => chain(-y, [["head", -9], ["hairBack1", -1.06], ["hairBack2", -0.97]], 0.05)),
    part("hairDark", inner, ([x, y]) => chain(-y, [["head", -9], ["hairBack1", -1.06], ["hairBack2", -0.97]], 0.05)),
    ...both("hair", sideLock, null).map((piece, k) => Object.assign(piece, { bones: hanging(k === 0 ? "hairLeft" : "hairRight") })),
    part("ribbon", band(), only("head")),
  ];
}

export function figure() {
  return [part("skin", skull(), only("head")), ...hair(), ...limbs(), ...dress()];
}
