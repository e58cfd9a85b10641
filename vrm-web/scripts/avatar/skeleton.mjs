/** Bones: humanoid ones as VRM names them, and chains of hair and cloth that springs move. */
import { add, lerp, scale, smooth } from "./math.mjs";
import { PIVOT } from "./eyeshape.mjs";

const { sin, cos, PI } = Math;

/** The head is modelled around its bone in units of its own; this makes it as large as she likes. */
export const HEAD = { at: [0, 1.225, 0], size: 1.1 };
/** From the head's own places to the figure's. */
export const fromHead = (p) => add(HEAD.at, scale(p, HEAD.size));

const FINGERS = ["Index", "Middle", "Ring", "Little"];
/** Start (x, z) and the lengths of the three bones of each finger. */
export const HAND = {
  wrist: [0.4, 1.118, 0.004],
  fingers: [
    { name: "Index", at: [0.463, 0.0215], bones: [0.0235, 0.0165, 0.015], r: 0.0073, spread: 0.07 },
    { name: "Middle", at: [0.466, 0.0075], bones: [0.026, 0.0185, 0.0155], r: 0.0075, spread: 0.01 },
    { name: "Ring", at: [0.464, -0.0065], bones: [0.0245, 0.017, 0.015], r: 0.0072, spread: -0.05 },
    { name: "Little", at: [0.459, -0.0195], bones: [0.0195, 0.013, 0.0125], r: 0.0063, spread: -0.12 },
  ],
  thumb: { at: [0.418, 0.016], bones: [0.024, 0.019, 0.016], r: 0.0083 },
  /** How much each joint of a resting hand is bent, radians. */
  curl: [0.1, 0.16, 0.14],
};

/** The joints of a finger of the left hand, tip included. */
export function fingerPath({ at: [x, z], bones, spread = 0 }) {
  let place = [x, HAND.wrist[1] - 0.0005, z + HAND.wrist[2]];
  let bend = 0;
  const points = [place];
  bones.forEach((length, k) => {
    bend += HAND.curl[k];
    place = add(place, [length * cos(bend) * cos(spread), -length * sin(bend), length * cos(bend) * sin(spread)]);
    points.push(place);
  });
  return points;
}
export function thumbPath({ at: [x, z], bones }) {
  let place = [x, HAND.wrist[1] - 0.003, z + HAND.wrist[2]];
  let angle = 0.95;
  const points = [place];
  bones.forEach((length, k) => {
    place = add(place, [length * cos(angle), -length * (0.16 + 0.05 * k), length * sin(angle)]);
    points.push(place);
    angle -= 0.24;
  });
  return points;
}

/** Chains: parent, joints from the root to the tip (the tip only gives the last bone its length), and how they move. */
export const CHAINS = [];

function chain(name, parent, points, spring) {
  CHAINS.push({ name, parent, points, spring });
}
const hairAt = (points) => points.map(fromHead);
const HAIR = { stiffness: 1.5, gravity: 0.25, drag: 0.45, radius: 0.018, colliders: ["head", "body", "arms"] };

/** Angles around the head (from the front, to her left) at which chains of long hair hang. */
export const BACK_ANGLES = [1.95, 2.55, PI, 2 * PI - 2.55, 2 * PI - 1.95];
export const BACK_HEIGHTS = [0.075, -0.02, -0.12, -0.225, -0.33];
/** How far from the middle long hair hangs at a height of the head's own. */
const backRadius = (y) => {
  const down = smooth(0.12, -0.3, y);
  return [0.128 + 0.012 * sin(down * PI), 0.142 - 0.035 * smooth(0.02, -0.12, y) + 0.05 * smooth(-0.1, -0.33, y)];
};
export const backPoint = (angle, y, off = 0) => {
  const [rx, rz] = backRadius(y);
  return [(rx + off) * sin(angle), y, -0.012 + (rz + off) * cos(angle)];
};
BACK_ANGLES.forEach((angle, k) => chain(`hairBack${k + 1}_`, "head", hairAt(BACK_HEIGHTS.map((y) => backPoint(angle, y))), HAIR));

/** Side locks: in front of the ears, down to the chest. */
export const SIDE_POINTS = [[0.111, 0.07, 0.042], [0.112, 0.0, 0.05], [0.104, -0.07, 0.068], [0.112, -0.145, 0.082]];
for (const side of [1, -1]) {
  const name = side > 0 ? "Left" : "Right";
  chain(`hairSide${name}_`, "head", hairAt(SIDE_POINTS.map(([x, y, z]) => [x * side, y, z])), { ...HAIR, stiffness: 1.8, radius: 0.012 });
}
/** Fringe: short, stiff. */
export const FRINGE = [[0.055, "Left"], [0, "Middle"], [-0.055, "Right"]];
for (const [x, name] of FRINGE) {
  chain(`hairFringe${name}_`, "head", hairAt([[x * 0.9, 0.195, 0.085], [x, 0.15, 0.118], [x, 0.112, 0.122]]), { ...HAIR, stiffness: 3.2, gravity: 0.05, drag: 0.6, radius: 0.004, colliders: [] });
}
/** Tails of the bow in her hair and of the bow at her back, and of the tie. */
const CLOTH = { stiffness: 1.1, gravity: 0.4, drag: 0.5, radius: 0.01, colliders: ["body"] };
chain("tieLeft_", "upperChest", [[0.012, 1.098, 0.088], [0.026, 1.06, 0.1], [0.034, 1.015, 0.098]], CLOTH);
chain("tieRight_", "upperChest", [[-0.012, 1.098, 0.088], [-0.026, 1.06, 0.1], [-0.034, 1.015, 0.098]], CLOTH);
chain("bowLeft_", "hips", [[0.03, 0.895, -0.085], [0.055, 0.8, -0.13], [0.07, 0.69, -0.16]], { ...CLOTH, radius: 0.015 });
chain("bowRight_", "hips", [[-0.03, 0.895, -0.085], [-0.055, 0.8, -0.13], [-0.07, 0.69, -0.16]], { ...CLOTH, radius: 0.015 });

/** The skirt: eight chains around the hips. */
export const SKIRT = { top: 0.9, bottom: 0.575, chains: 8, heights: [0.84, 0.71, 0.575] };
export const skirtRadius = (y) => {
  const down = smooth(SKIRT.top + 0.01, SKIRT.bottom, y);
  const line = (SKIRT.top - y) / (SKIRT.top - SKIRT.bottom);
  return [lerp(0.078, 0.235, 0.62 * line + 0.38 * Math.sqrt(Math.max(0, line))) - 0.012 * down, lerp(0.066, 0.215, 0.6 * line + 0.4 * Math.sqrt(Math.max(0, line))) - 0.012 * down];
};
for (let k = 0; k < SKIRT.chains; k++) {
  const angle = (k / SKIRT.chains) * 2 * PI;
  const points = SKIRT.heights.map((y) => {
    const [rx, rz] = skirtRadius(y);
    return [rx * sin(angle), y, rz * cos(angle)];
  });
  chain(`skirt${k + 1}_`, "hips", points, { stiffness: 2.2, gravity: 0.2, drag: 0.5, radius: 0.02, colliders: ["legs"] });
}

const body = [
  ["hips", null, [0, 0.8, 0]],
  ["spine", "hips", [0, 0.88, 0]],
  ["chest", "spine", [0, 0.97, 0]],
  ["upperChest", "chest", [0, 1.05, 0]],
  ["neck", "upperChest", [0, 1.17, -0.004]],
  ["head", "neck", HEAD.at],
];
function limbs(side) {
  const x = side === "left" ? 1 : -1;
  const at = ([px, py, pz]) => [px * x, py, pz];
  const list = [
    [`${side}Eye`, "head", at(fromHead(PIVOT))],
    [`${side}Shoulder`, "upperChest", at([0.028, 1.135, 0])],
    [`${side}UpperArm`, `${side}Shoulder`, at([0.104, 1.122, 0])],
    [`${side}LowerArm`, `${side}UpperArm`, at([0.25, 1.12, 0])],
    [`${side}Hand`, `${side}LowerArm`, at(HAND.wrist)],
    [`${side}UpperLeg`, "hips", at([0.06, 0.765, 0])],
    [`${side}LowerLeg`, `${side}UpperLeg`, at([0.062, 0.425, 0.004])],
    [`${side}Foot`, `${side}LowerLeg`, at([0.063, 0.085, -0.012])],
    [`${side}Toes`, `${side}Foot`, at([0.064, 0.022, 0.075])],
  ];
  const digit = (name, names, points) =>
    points.slice(0, 3).forEach((point, k) => list.push([`${side}${name}${names[k]}`, k === 0 ? `${side}Hand` : `${side}${name}${names[k - 1]}`, at(point)]));
  digit("Thumb", ["Metacarpal", "Proximal", "Distal"], thumbPath(HAND.thumb));
  for (const name of FINGERS) digit(name, ["Proximal", "Intermediate", "Distal"], fingerPath(HAND.fingers.find((finger) => finger.name === name)));
  return list;
}

/** All bones: name, parent, place in the rest pose (arms straight out). */
export function bones() {
  const list = [...body, ...limbs("left"), ...limbs("right")];
  const humanoid = list.length;
  for (const { name, parent, points } of CHAINS) {
    points.forEach((point, k) => list.push([`${name}${k + 1}`, k === 0 ? parent : `${name}${k}`, point]));
  }
  return { list, humanoid };
}

/** What hair and cloth must not go through: bone, place in the figure, radius and, for capsules, the other end. */
const pair = (side) => (side === "left" ? 1 : -1);
export const COLLIDERS = {
  head: [{ bone: "head", at: fromHead([0, 0.12, -0.012]), radius: 0.112 }],
  body: [
    { bone: "neck", at: [0, 1.175, -0.005], radius: 0.042, to: [0, 1.225, 0] },
    { bone: "upperChest", at: [-0.062, 1.095, -0.004], radius: 0.062, to: [0.062, 1.095, -0.004] },
    { bone: "chest", at: [0, 0.99, 0], radius: 0.075 },
    { bone: "spine", at: [0, 0.9, 0], radius: 0.075 },
  ],
  arms: ["left", "right"].map((side) => ({ bone: `${side}UpperArm`, at: [0.12 * pair(side), 1.122, 0], radius: 0.05, to: [0.2 * pair(side), 1.12, 0] })),
  legs: [
    ...["left", "right"].map((side) => ({ bone: `${side}UpperLeg`, at: [0.06 * pair(side), 0.74, 0], radius: 0.072, to: [0.062 * pair(side), 0.5, 0.004] })),
    { bone: "hips", at: [0, 0.8, 0], radius: 0.1 },
  ],
};

/** Weights along a row of `[bone, from]`: each takes over smoothly around its beginning. */
export function along(value, steps, soft) {
  let weights = [[steps[0][0], 1]];
  for (const [bone, from, own = soft] of steps.slice(1)) {
    const part = smooth(from - own, from + own, value);
    weights = [...weights.map(([name, weight]) => [name, weight * (1 - part)]), [bone, part]];
  }
  return weights.filter(([, weight]) => weight > 0.002);
}

/** Shares of a chain's bones for a place at `value` along `starts` (where each bone begins), root first. */
export const hanging = (parent, name, starts, soft) => (value) => along(value, [[parent, -9], ...starts.map((from, k) => [`${name}${k + 1}`, from])], soft);

/** Sums weights and leaves out what is small. */
export function blend(...lists) {
  const sums = new Map();
  for (const [list, share] of lists) for (const [bone, weight] of list) sums.set(bone, (sums.get(bone) ?? 0) + weight * share);
  return [...sums].filter(([, weight]) => weight > 0.002);
}
