/** What is seen of her skin beside the face: neck, arms, hands, legs. */
import { add, clamp, curve, lerp, norm, path, smooth, sub } from "./math.mjs";
import { Mesh, tube } from "./mesh.mjs";
import { along, fingerPath, HAND, thumbPath } from "./skeleton.mjs";

const { abs, sqrt, sin, cos, PI } = Math;

export const ARM_Y = 1.12;

/** Weights of everything on a trunk by its height. */
export const trunk = ([, y]) => along(y, [["hips", 0], ["spine", 0.885], ["chest", 0.97], ["upperChest", 1.045], ["neck", 1.172, 0.016]], 0.03);
/** Weights of everything on an arm by its distance from the middle; her left arm. */
export const arm = ([x]) =>
  along(x, [["upperChest", 0], ["leftShoulder", 0.055, 0.025], ["leftUpperArm", 0.106, 0.026], ["leftLowerArm", 0.25, 0.03], ["leftHand", 0.4, 0.014]], 0.03);
export const leg = ([, y]) => along(-y, [["hips", -9], ["leftUpperLeg", -0.775, 0.05], ["leftLowerLeg", -0.425, 0.04], ["leftFoot", -0.09, 0.03]], 0.03);
export const foot = ([, y, z]) => {
  const shin = smooth(0.075, 0.125, y);
  const toes = smooth(0.06, 0.09, z) * (1 - shin);
  return [["leftLowerLeg", shin], ["leftFoot", (1 - shin) * (1 - toes)], ["leftToes", toes]].filter(([, weight]) => weight > 0.002);
};

export const LEG = {
  /** Half width, half depth and forward shift of a leg by height. */
  at: (() => {
    const r = curve([[0.05, 0.026], [0.09, 0.0265], [0.16, 0.031], [0.28, 0.0415], [0.35, 0.041], [0.42, 0.0395], [0.5, 0.046], [0.6, 0.0555], [0.7, 0.063], [0.78, 0.066]]);
    const z = curve([[0.05, -0.014], [0.16, -0.014], [0.28, -0.012], [0.4, 0.002], [0.55, 0.004], [0.78, 0]]);
    const x = curve([[0.05, 0.063], [0.42, 0.0615], [0.78, 0.0595]]);
    return (y) => ({ r: r(y), z: z(y), x: x(y) });
  })(),
};

function neck() {
  const rows = [[1.246, 0.036, 0.0], [1.215, 0.0355, -0.003], [1.18, 0.037, -0.006], [1.16, 0.043, -0.007], [1.142, 0.06, -0.006]];
  const r = curve([...rows].reverse().map(([y, value]) => [y, value]));
  const z = curve([...rows].reverse().map(([y, , value]) => [y, value]));
  return Mesh.grid(7, 18, true, (v, u) => {
    const y = lerp(1.25, 1.142, v);
    const angle = u * 2 * PI;
    return [r(y) * sin(angle), y, z(y) + r(y) * 0.96 * cos(angle)];
  }).with("skin", ([, y]) => along(y, [["upperChest", 0], ["neck", 1.168], ["head", 1.222]], 0.02));
}

function armSkin() {
  const r = curve([[0.1, 0.03], [0.2, 0.0285], [0.25, 0.0255], [0.29, 0.026], [0.36, 0.0205], [0.4, 0.0178], [0.42, 0.0178]]);
  return tube((v) => [lerp(0.1, 0.415, v), ARM_Y - 0.002 * v, 0.004 * v], (v) => {
    const x = lerp(0.1, 0.415, v);
    return [r(x) * lerp(1, 1.1, smooth(0.36, 0.41, x)), r(x) * lerp(1, 0.9, smooth(0.36, 0.41, x))];
  }, { rows: 12, columns: 12, side: () => [0, 0, 1] })
    .uv(([u, v]) => [u, 0.35 + 0.4 * v])
    .with("skin", arm);
}

/** Rounded ends for fingers. */
const rounded = (v, from) => sqrt(Math.max(0, 1 - clamp((v - from) / (1 - from)) ** 2));

function fingerMesh(points, r, names, { side, flat = 0.92 }) {
  const way = path(points);
  const joints = points.slice(0, 3);
  const mesh = tube(way, (v) => {
    const knuckle = 1 + 0.05 * Math.exp(-(((v - 0.36) / 0.06) ** 2)) + 0.04 * Math.exp(-(((v - 0.68) / 0.05) ** 2));
    const size = r * lerp(1.03, 0.82, v) * knuckle * rounded(v, 0.84) + 0.0001;
    return [size, size * flat];
  }, { rows: 9, columns: 7, side: () => side });
  const lengths = [0];
  points.slice(1).forEach((point, k) => lengths.push(lengths[k] + Math.hypot(...sub(point, points[k]))));
  const ahead = norm(sub(points[3], points[0]));
  return mesh
    .uv(() => [0.5, 0.72])
    .with("skin", (p) => {
      const distance = sub(p, joints[0]).reduce((sum, x, k) => sum + x * ahead[k], 0);
      return along(distance, [["leftHand", -9], [names[0], lengths[0] + 0.002], [names[1], lengths[1]], [names[2], lengths[2]]], 0.005);
    });
}

function hand() {
  const [wx, wy, wz] = HAND.wrist;
  const wide = curve([[0, 0.0185], [0.2, 0.0195], [0.6, 0.0275], [0.88, 0.0298], [1, 0.026]]);
  const deep = curve([[0, 0.0158], [0.3, 0.0142], [0.75, 0.0115], [1, 0.0082]]);
  const palm = tube((v) => [lerp(wx - 0.008, wx + 0.0715, v), wy - 0.0005, wz + lerp(0, 0.001, v)], (v) => [wide(v) * rounded(v, 0.93), deep(v) * rounded(v, 0.9)], {
    rows: 8,
    columns: 14,
    side: () => [0, 0, 1],
    outline: (angle) => [Math.sign(cos(angle)) * abs(cos(angle)) ** 0.8, Math.sign(sin(angle)) * abs(sin(angle)) ** 0.9],
  })
    .uv(() => [0.5, 0.7])
    .with("skin", arm);
  const thumbRoot = Mesh.grid(5, 8, true, (v, u) => {
    const [down, around] = [v * PI, u * 2 * PI];
    const [x, y, z] = [sin(down) * sin(around), cos(down), sin(down) * cos(around)];
    return add([wx + 0.026, wy - 0.003, wz + 0.016], [0.021 * x + 0.004 * z, 0.0108 * y, 0.0135 * z + 0.005 * x]);
  })
    .uv(() => [0.5, 0.7])
    .with("skin", () => [["leftHand", 0.75], ["leftThumbMetacarpal", 0.25]]);
  const fingers = HAND.fingers.map((finger) =>
    fingerMesh(fingerPath(finger), finger.r, ["Proximal", "Intermediate", "Distal"].map((part) => `left${finger.name}${part}`), { side: [0, 0, 1] }),
  );
  const thumb = fingerMesh(thumbPath(HAND.thumb), HAND.thumb.r, ["Metacarpal", "Proximal", "Distal"].map((part) => `leftThumb${part}`), { side: [0, 1, 0], flat: 1 });
  return [palm, thumbRoot, thumb, ...fingers];
}

function legSkin() {
  return Mesh.grid(8, 14, true, (v, u) => {
    const y = lerp(0.79, 0.48, v);
    const { r, x, z } = LEG.at(y);
    const angle = u * 2 * PI;
    return [x + r * sin(angle), y, z + r * 1.02 * cos(angle)];
  })
    .uv(([u, v]) => [u, 0.3 + 0.5 * v])
    .with("skin", leg);
}

export function body() {
  const left = [armSkin(), ...hand(), legSkin()];
  return [neck(), ...left, ...left.map((mesh) => mesh.mirror())];
}
