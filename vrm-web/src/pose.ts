/**
 * Poses in numbers: rotations of normalized VRM bones (T-pose is zero, facing +Z, her left is +X),
 * as Euler angles XYZ in radians, and where the hips are.
 */
import { lerp } from "./curves";

export type Angles = [x: number, y: number, z: number];
export type Bones = Record<string, Angles>;

export interface Pose {
  bones: Bones;
  /** How far the hips are from where they rest, in parts of their height. */
  hips: Angles;
}

/** Gestures add to what these do; all other bones they take over. */
const SHARED = new Set(["hips", "spine", "chest", "upperChest", "neck", "head", "leftShoulder", "rightShoulder"]);

/** Lays a gesture over a pose: `weight` 0 leaves it, 1 gives the gesture its limbs. */
export function overlay(pose: Pose, gesture: Bones, weight: number, amount: number): void {
  for (const [bone, angles] of Object.entries(gesture)) {
    const under = pose.bones[bone] ?? (pose.bones[bone] = [0, 0, 0]);
    for (let axis = 0; axis < 3; axis++) {
      const now = under[axis] ?? 0;
      const wanted = angles[axis] ?? 0;
      under[axis] = SHARED.has(bone) ? now + wanted * weight * amount : lerp(now, wanted, weight);
    }
  }
}

/** The same gesture with the other hand. */
export function mirrored(bones: Bones): Bones {
  const other: Bones = {};
  for (const [bone, [x, y, z]] of Object.entries(bones)) {
    const name = bone.startsWith("left")
      ? `right${bone.slice(4)}`
      : bone.startsWith("right")
        ? `left${bone.slice(5)}`
        : bone;
    other[name] = [x, -y, -z];
  }
  return other;
}

const FINGERS = ["Index", "Middle", "Ring", "Little"] as const;

/** A hand whose fingers are bent, 0 (flat) to 1 (a fist); some may be left out. */
export function hand(side: "left" | "right", bent: number, straight: readonly string[] = []): Bones {
  const sign = side === "left" ? -1 : 1;
  const bones: Bones = {};
  for (const finger of FINGERS) {
    const bend = straight.includes(finger) ? 0.05 : bent;
    bones[`${side}${finger}Proximal`] = [0, 0, sign * bend * 1.3];
    bones[`${side}${finger}Intermediate`] = [0, 0, sign * bend * 1.6];
    bones[`${side}${finger}Distal`] = [0, 0, sign * bend * 1.1];
  }
  bones[`${side}ThumbProximal`] = [0, -sign * bent * 0.5, 0];
  bones[`${side}ThumbDistal`] = [0, -sign * bent * 0.7, 0];
  return bones;
}
