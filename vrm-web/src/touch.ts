/** Which part of her a ray from the camera meets: capsules between joints, so no pixels are read back. */
import type { ActionName } from "./actions";
import { clamp } from "./curves";
import type { Feeling } from "./protocol";

export type Region = "head" | "cheek" | "shoulder" | "arm" | "hand";

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

export type Joint =
  | "head"
  | "crown"
  | "leftCheek"
  | "rightCheek"
  | `${"left" | "right"}${"UpperArm" | "LowerArm" | "Hand" | "Fingers"}`;
export type Joints = Partial<Record<Joint, Point>>;

export interface Capsule {
  region: Region;
  from: Point;
  to: Point;
  radius: number;
}

/** `unit` is the height of the head above its joint, m; radii are parts of it. */
export function capsulesOf(joints: Joints, unit: number): Capsule[] {
  const capsules: Capsule[] = [];
  const add = (region: Region, from: Joint, to: Joint, radius: number): void => {
    const [a, b] = [joints[from], joints[to]];
    if (a && b) capsules.push({ region, from: a, to: b, radius: radius * unit });
  };
  add("head", "head", "crown", 0.5);
  for (const side of ["left", "right"] as const) {
    add("cheek", `${side}Cheek`, `${side}Cheek`, 0.26);
    add("shoulder", `${side}UpperArm`, `${side}UpperArm`, 0.36);
    add("arm", `${side}UpperArm`, `${side}LowerArm`, 0.22);
    add("arm", `${side}LowerArm`, `${side}Hand`, 0.2);
    add("hand", `${side}Hand`, `${side}Fingers`, 0.24);
  }
  return capsules;
}

const minus = (a: Point, b: Point): Point => ({ x: a.x - b.x, y: a.y - b.y, z: a.z - b.z });
const dot = (a: Point, b: Point): number => a.x * b.x + a.y * b.y + a.z * b.z;
const along = (from: Point, way: Point, far: number): Point => ({
  x: from.x + way.x * far,
  y: from.y + way.y * far,
  z: from.z + way.z * far,
});

/** How far along a ray (`way` has length 1) it enters a capsule, about; `null` beside it. */
export function entry(origin: Point, way: Point, { from, to, radius }: Capsule): number | null {
  const axis = minus(to, from);
  const length2 = dot(axis, axis);
  const toFrom = minus(from, origin);
  const across = dot(axis, way);
  const fromAlong = dot(toFrom, way);
  const denominator = length2 - across * across;
  // The point of the axis that is nearest to the ray's line.
  const raw = denominator > 1e-9 ? (across * fromAlong - dot(axis, toFrom)) / denominator : 0;
  const nearest = along(from, axis, length2 > 0 ? clamp(raw, 0, 1) : 0);
  const far = dot(minus(nearest, origin), way);
  if (far <= 0) return null;
  const gap = minus(nearest, along(origin, way, far));
  const gap2 = dot(gap, gap);
  return gap2 > radius * radius ? null : far - Math.sqrt(radius * radius - gap2);
}

export function touched(origin: Point, way: Point, capsules: readonly Capsule[]): Region | null {
  let first = Infinity;
  let region: Region | null = null;
  for (const capsule of capsules) {
    const far = entry(origin, way, capsule);
    if (far !== null && far < first) {
      first = far;
      region = capsule.region;
    }
  }
  return region;
}

export interface Reaction {
  feeling: Feeling;
  action: ActionName | null;
}

/** What she does when she is touched, and when it goes on. */
const REACTIONS: Record<Region, readonly [Reaction, ...Reaction[]]> = {
  head: [
    { feeling: { emotion: "happy", intensity: 0.7 }, action: null },
    { feeling: { emotion: "loving", intensity: 0.8 }, action: "sway" },
    { feeling: { emotion: "shy", intensity: 0.7 }, action: "lookAway" },
  ],
  cheek: [
    { feeling: { emotion: "shy", intensity: 0.8 }, action: "lookAway" },
    { feeling: { emotion: "loving", intensity: 0.6 }, action: null },
    { feeling: { emotion: "angry", intensity: 0.4 }, action: "shake" },
  ],
  shoulder: [
    { feeling: { emotion: "surprised", intensity: 0.4 }, action: null },
    { feeling: { emotion: "happy", intensity: 0.5 }, action: "nod" },
  ],
  arm: [
    { feeling: { emotion: "confused", intensity: 0.4 }, action: null },
    { feeling: { emotion: "confused", intensity: 0.6 }, action: "shrug" },
  ],
  hand: [
    { feeling: { emotion: "happy", intensity: 0.6 }, action: "wave" },
    { feeling: { emotion: "excited", intensity: 0.6 }, action: "cheer" },
  ],
};

/** A part that was touched feels nothing for so long, s. */
export const COOL_DOWN_S = 1.5;
/** After this without a touch it is the first time again, s. */
const FORGET_S = 20;

export class Touch {
  readonly #last = new Map<Region, { at: number; times: number }>();

  /** The reaction to a touch at `now`, s; `null` while the part cools down. */
  at(region: Region, now: number): Reaction | null {
    const last = this.#last.get(region);
    if (last && now - last.at < COOL_DOWN_S) return null;
    const times = last && now - last.at < FORGET_S ? last.times + 1 : 0;
    this.#last.set(region, { at: now, times });
    const steps = REACTIONS[region];
    return steps[Math.min(times, steps.length - 1)] ?? steps[0];
  }
}
