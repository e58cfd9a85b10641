/** Twelve gestures, keyframed by hand. Angles as in `pose.ts`; torso and head add to what they do. */
import { lerp, smooth } from "./curves";
import { hand, mirrored, type Angles, type Bones } from "./pose";

export const ACTIONS = [
  "nod",
  "shake",
  "wave",
  "bow",
  "shrug",
  "laugh",
  "think",
  "point",
  "cheer",
  "lookAway",
  "stretch",
  "sway",
] as const;
export type ActionName = (typeof ACTIONS)[number];

interface Key {
  /** Seconds from the start. */
  at: number;
  bones: Bones;
}

export interface Action {
  seconds: number;
  keys: readonly Key[];
}

/** A gesture that goes from `rest` to each of the steps, `[seconds, bones]`, over what stays through all of it. */
function action(seconds: number, stays: Bones, ...steps: [number, Bones][]): Action {
  return { seconds, keys: steps.map(([at, bones]) => ({ at, bones: { ...stays, ...bones } })) };
}

const both = (bones: Bones): Bones => ({ ...bones, ...mirrored(bones) });

/** Only the head. */
const head = (x: number, y: number, z: number): Bones => ({
  neck: [x * 0.4, y * 0.4, z * 0.4],
  head: [x * 0.6, y * 0.6, z * 0.6],
});

/** The forearm upright beside the head; `swing` −1 is outward, 1 inward. */
const waving = (swing: number): Bones => ({
  rightLowerArm: [0, 1.69 + swing * 0.39, -0.56 + swing * 0.27],
  rightHand: [0, 0, -swing * 0.25],
});
const CHEERING: Bones = {
  rightUpperArm: [-0.1, 0.45, 0.15],
  rightLowerArm: [0, 0.5, -2.0],
  ...hand("right", 0.85),
};
const SHRUGGED: Bones = {
  rightShoulder: [0, 0, -0.22],
  rightUpperArm: [-0.15, 0.1, 1.05],
  rightLowerArm: [-1.2, 1.35, 0.1],
  rightHand: [-0.4, 0, -0.35],
};

export const LIBRARY: Record<ActionName, Action> = {
  nod: action(1.1, {}, [0, head(0, 0, 0)], [0.25, head(0.26, 0, 0)], [0.5, head(0.02, 0, 0)], [0.75, head(0.18, 0, 0)], [1.1, head(0, 0, 0)]),
  shake: action(
    1.4,
    {},
    [0, head(0, 0, 0)],
    [0.25, head(0.04, 0.28, 0)],
    [0.55, head(0.04, -0.26, 0)],
    [0.85, head(0.04, 0.2, 0)],
    [1.1, head(0.02, -0.1, 0)],
    [1.4, head(0, 0, 0)],
  ),
  wave: action(
    2.6,
    { rightUpperArm: [-0.89, 0.19, 0.63], ...hand("right", 0.08) },
    [0, waving(0)],
    [0.5, { ...waving(0.9), ...head(0, 0, -0.1) }],
    [0.8, { ...waving(-0.9), ...head(0, 0, -0.1) }],
    [1.1, { ...waving(0.9), ...head(0, 0, -0.12) }],
    [1.4, { ...waving(-0.9), ...head(0, 0, -0.12) }],
    [1.7, { ...waving(0.9), ...head(0, 0, -0.1) }],
    [2.1, { ...waving(-0.5), ...head(0, 0, -0.05) }],
    [2.6, waving(0)],
  ),
  bow: action(
    2.4,
    {},
    [0, { spine: [0, 0, 0], chest: [0, 0, 0], ...head(0, 0, 0) }],
    [0.8, { spine: [0.24, 0, 0], chest: [0.2, 0, 0], ...head(0.28, 0, 0) }],
    [1.4, { spine: [0.25, 0, 0], chest: [0.2, 0, 0], ...head(0.3, 0, 0) }],
    [2.4, { spine: [0, 0, 0], chest: [0, 0, 0], ...head(0, 0, 0) }],
  ),
  shrug: action(1.9, both(SHRUGGED), [0, head(0, 0, 0)], [0.4, head(0.02, 0.05, 0.16)], [1.3, head(0.02, 0.05, 0.14)], [1.9, head(0, 0, 0)]),
  laugh: action(
    2,
    {},
    ...([0, 0.25, 0.45, 0.65, 0.85, 1.05, 1.25, 2].map((at, i): [number, Bones] => {
      const on = i === 0 || i === 7 ? 0 : 1;
      const beat = on * (i % 2 === 0 ? -0.5 : 1);
      return [
        at,
        {
          spine: [-0.04 * on + 0.02 * beat, 0, 0],
          chest: [0.04 * beat, 0, 0],
          leftShoulder: [0, 0, 0.09 * on + 0.05 * beat],
          rightShoulder: [0, 0, -0.09 * on - 0.05 * beat],
          ...head(-0.1 * on + 0.06 * beat, 0, 0.08 * on),
        },
      ];
    })),
  ),
  think: action(
    4.5,
    {
      rightUpperArm: [-0.89, 0.3, 1.5],
      rightLowerArm: [0, 2.12, 0.07],
      rightHand: [0, 0.1, 0.1],
      ...hand("right", 0.7, ["Index"]),
      leftUpperArm: [-0.32, 0.1, -1.28],
      leftLowerArm: [0, -1.35, 0],
    },
    [0, head(0, 0, 0)],
    [0.7, head(0.03, 0.03, 0.1)],
    [2.2, head(0, -0.02, 0.13)],
    [3.7, head(0.03, 0.04, 0.08)],
    [4.5, head(0, 0, 0)],
  ),
  point: action(
    2,
    { rightUpperArm: [-0.88, 0.31, 1.2], rightLowerArm: [0, 1.55, -0.28], rightHand: [0, 0, -0.05], ...hand("right", 0.9, ["Index"]) },
    [0, head(0, 0, 0)],
    [0.45, { ...head(0.06, 0, 0), rightLowerArm: [0, 1.72, -0.28] }],
    [0.75, { ...head(-0.02, 0, 0), rightLowerArm: [0, 1.4, -0.28] }],
    [1.05, { ...head(0.06, 0, 0), rightLowerArm: [0, 1.72, -0.28] }],
    [2, head(0, 0, 0)],
  ),
  cheer: action(
    2.2,
    both(CHEERING),
    [0, head(0, 0, 0)],
    ...([0.35, 0.65, 0.95, 1.25, 1.6].map((at, i): [number, Bones] => {
      const up = i % 2;
      return [
        at,
        {
          ...both({ rightUpperArm: [-0.1, 0.45, 0.2 - up * 0.35], rightShoulder: [0, 0, -0.08 - up * 0.08] }),
          chest: [-0.06 - up * 0.03, 0, 0],
          ...head(-0.08 - up * 0.05, 0, 0),
        },
      ];
    })),
    [2.2, head(0, 0, 0)],
  ),
  lookAway: action(
    2.8,
    {},
    [0, { chest: [0, 0, 0], ...head(0, 0, 0) }],
    [0.5, { chest: [0, 0.08, 0], ...head(0.14, 0.42, -0.08) }],
    [1.9, { chest: [0, 0.07, 0], ...head(0.16, 0.38, -0.1) }],
    [2.8, { chest: [0, 0, 0], ...head(0, 0, 0) }],
  ),
  stretch: action(
    4,
    both({ rightUpperArm: [-0.67, 0.22, -0.85], rightLowerArm: [0, 0.11, -1.84], ...hand("right", 0.3) }),
    [0, { spine: [0, 0, 0], chest: [0, 0, 0], ...head(0, 0, 0) }],
    [1, { spine: [-0.08, 0, 0.02], chest: [-0.1, 0, 0.03], ...head(-0.14, 0, 0.05) }],
    [2, { spine: [-0.08, 0, -0.08], chest: [-0.1, 0, -0.07], ...head(-0.12, 0, -0.1) }],
    [2.8, { spine: [-0.08, 0, 0.07], chest: [-0.1, 0, 0.06], ...head(-0.1, 0, 0.1) }],
    [4, { spine: [0, 0, 0], chest: [0, 0, 0], ...head(0, 0, 0) }],
  ),
  sway: action(
    4.8,
    both({ rightUpperArm: [-0.15, 0.12, 1.1], rightLowerArm: [0, 1.05, -0.25], ...hand("right", 0.45) }),
    ...([0, 0.6, 1.2, 1.8, 2.4, 3, 3.6, 4.2, 4.8].map((at, i): [number, Bones] => {
      const side = i === 0 || i === 8 ? 0 : i % 2 === 0 ? -1 : 1;
      return [
        at,
        {
          hips: [0, side * 0.06, side * 0.05],
          spine: [0, side * 0.05, -side * 0.08],
          chest: [0.02, side * 0.08, -side * 0.06],
          ...head(side === 0 ? 0 : 0.04, -side * 0.06, side * 0.14),
        },
      ];
    })),
  ),
};

const NOTHING: Bones = {};
const ZERO: Angles = [0, 0, 0];

/** The gesture `time` seconds after its start. */
export function sample({ keys }: Action, time: number): Bones {
  const next = keys.findIndex((key) => key.at > time);
  const before = next < 0 ? keys.at(-1) : keys[next - 1];
  const after = next < 0 ? before : keys[next];
  if (!before || !after) return NOTHING;
  const span = after.at - before.at;
  const part = span > 0 ? smooth((time - before.at) / span) : 0;
  const bones: Bones = {};
  for (const bone of new Set([...Object.keys(before.bones), ...Object.keys(after.bones)])) {
    const a = before.bones[bone] ?? ZERO;
    const b = after.bones[bone] ?? ZERO;
    bones[bone] = [lerp(a[0], b[0], part), lerp(a[1], b[1], part), lerp(a[2], b[2], part)];
  }
  return bones;
}
