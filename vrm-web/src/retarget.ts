/** Clips of other skeletons, Mixamo's above all, as clips of normalized VRM bones. */
import { AnimationClip, Object3D, Quaternion, QuaternionKeyframeTrack, Vector3, VectorKeyframeTrack } from "three";

const LIMBS: Record<string, string> = {
  shoulder: "Shoulder",
  arm: "UpperArm",
  forearm: "LowerArm",
  hand: "Hand",
  upleg: "UpperLeg",
  leg: "LowerLeg",
  foot: "Foot",
  toebase: "Toes",
  // The names of VRM itself.
  upperarm: "UpperArm",
  lowerarm: "LowerArm",
  upperleg: "UpperLeg",
  lowerleg: "LowerLeg",
  toes: "Toes",
};
const TRUNK: Record<string, string> = {
  hips: "hips",
  spine: "spine",
  spine1: "chest",
  spine2: "upperChest",
  chest: "chest",
  upperchest: "upperChest",
  neck: "neck",
  head: "head",
};
const FINGERS: Record<string, string> = { index: "Index", middle: "Middle", ring: "Ring", pinky: "Little", little: "Little" };
const JOINTS = ["Proximal", "Intermediate", "Distal"];
const THUMB_JOINTS = ["Metacarpal", "Proximal", "Distal"];

/**
 * The VRM bone that a node of another skeleton is: Mixamo's names with any prefix
 * (`mixamorig:LeftForeArm`, `mixamorig9LeftForeArm`, `LeftForeArm`), or VRM's own.
 */
export function boneOf(name: string): string | null {
  const plain = name.replace(/^.*[:|]/, "").replace(/^mixamorig\d*_?/i, "");
  const trunk = TRUNK[plain.toLowerCase()];
  if (trunk) return trunk;
  const sided = /^(left|right)(.+)$/i.exec(plain);
  const side = sided?.[1]?.toLowerCase();
  const part = sided?.[2];
  if (side === undefined || part === undefined) return null;
  const limb = LIMBS[part.toLowerCase()];
  if (limb) return side + limb;
  const numbered = /^hand(thumb|index|middle|ring|pinky)([123])$/i.exec(part);
  if (numbered) {
    const joint = Number(numbered[2]) - 1;
    const finger = numbered[1]?.toLowerCase() ?? "";
    if (finger === "thumb") return `${side}Thumb${THUMB_JOINTS[joint]}`;
    return `${side}${FINGERS[finger]}${JOINTS[joint]}`;
  }
  const own = /^(thumb|index|middle|ring|little)(metacarpal|proximal|intermediate|distal)$/i.exec(part);
  if (!own) return null;
  const upper = (word: string | undefined): string => (word ? word[0]?.toUpperCase() + word.slice(1).toLowerCase() : "");
  return side + upper(own[1]) + upper(own[2]);
}

/**
 * A clip for the nodes of `source`, as it was loaded and in its T-pose, becomes one whose tracks are
 * named after VRM bones (`leftUpperArm.quaternion`, `hips.position`). `hipsHeight` is the avatar's,
 * m; `turned` says that it is a VRM 0.x one, which faces the other way. `null` without any known bone.
 */
export function retarget(source: Object3D, clip: AnimationClip, hipsHeight: number, turned: boolean): AnimationClip | null {
  source.updateMatrixWorld(true);
  const tracks: (QuaternionKeyframeTrack | VectorKeyframeTrack)[] = [];
  const [parent, rest, turn] = [new Quaternion(), new Quaternion(), new Quaternion()];
  const place = new Vector3();
  for (const track of clip.tracks) {
    const dot = track.name.lastIndexOf(".");
    const node = source.getObjectByName(track.name.slice(0, dot));
    const bone = node && boneOf(node.name);
    if (!node || !bone) continue;
    const { times } = track;
    const values = Float32Array.from(track.values);
    if (track.name.endsWith(".quaternion")) {
      node.parent?.getWorldQuaternion(parent);
      if (!node.parent) parent.identity();
      node.getWorldQuaternion(rest).invert();
      for (let i = 0; i + 3 < values.length; i += 4) {
        turn.fromArray(values, i).premultiply(parent).multiply(rest).toArray(values, i);
        if (turned) {
          values[i] = -(values[i] ?? 0);
          values[i + 2] = -(values[i + 2] ?? 0);
        }
      }
      tracks.push(new QuaternionKeyframeTrack(`${bone}.quaternion`, times, values));
    } else if (track.name.endsWith(".position") && bone === "hips") {
      const height = node.getWorldPosition(place).y;
      if (Math.abs(height) < 1e-6) continue;
      const scale = hipsHeight / height;
      for (let i = 0; i + 2 < values.length; i += 3) {
        place.fromArray(values, i);
        if (node.parent) place.applyMatrix4(node.parent.matrixWorld);
        place.multiplyScalar(scale);
        if (turned) place.set(-place.x, place.y, -place.z);
        place.toArray(values, i);
      }
      tracks.push(new VectorKeyframeTrack("hips.position", times, values));
    }
  }
  return tracks.length > 0 ? new AnimationClip(clip.name, clip.duration, tracks) : null;
}
