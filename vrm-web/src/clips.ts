/** Reads clips: VRMA, and FBX or GLB with a skeleton that is named as Mixamo's. Loaded when the first is dropped. */
import { AnimationClip, Group, Object3D, type KeyframeTrack } from "three";
import { FBXLoader } from "three/examples/jsm/loaders/FBXLoader.js";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
import type { VRM } from "@pixiv/three-vrm";
import {
  createVRMAnimationExpressionTracks,
  createVRMAnimationHumanoidTracks,
  createVRMAnimationLookAtTrack,
  VRMAnimationLoaderPlugin,
  type VRMAnimation,
} from "@pixiv/three-vrm-animation";
import { VOWELS } from "./protocol";
import { dialName, GAZE } from "./puppet";
import { retarget } from "./retarget";

/** A clip for one avatar whose expressions are `dials`, in that order. */
export async function readClip(name: string, data: ArrayBuffer, vrm: VRM, dials: readonly string[]): Promise<AnimationClip> {
  const clip = /\.fbx$/i.test(name) ? fromFbx(data, vrm) : await fromGltf(data, vrm, dials);
  if (!clip || clip.tracks.length === 0) {
    throw new Error("it moves no bone that an avatar has; clips need Mixamo's names of bones, or to be VRMA");
  }
  clip.name = name;
  return clip;
}

function fromFbx(data: ArrayBuffer, vrm: VRM): AnimationClip | null {
  const group = new FBXLoader().parse(data, "");
  const clip = longest(group.animations);
  return clip && retargeted(group, clip, vrm);
}

async function fromGltf(data: ArrayBuffer, vrm: VRM, dials: readonly string[]): Promise<AnimationClip | null> {
  const loader = new GLTFLoader();
  loader.register((parser) => new VRMAnimationLoaderPlugin(parser));
  const gltf = await loader.parseAsync(data, "");
  const animation = (gltf.userData["vrmAnimations"] as VRMAnimation[] | undefined)?.[0];
  if (animation) return fromVrma(animation, vrm, dials);
  const clip = longest(gltf.animations);
  return clip && retargeted(gltf.scene, clip, vrm);
}

const longest = (clips: readonly AnimationClip[]): AnimationClip | null =>
  clips.reduce<AnimationClip | null>((best, clip) => (best && best.duration >= clip.duration ? best : clip), null);

function retargeted(group: Group | Object3D, clip: AnimationClip, vrm: VRM): AnimationClip | null {
  const hips = vrm.humanoid.normalizedRestPose.hips?.position?.[1] ?? 1;
  return retarget(group, clip, hips, vrm.meta.metaVersion === "0");
}

function fromVrma(animation: VRMAnimation, vrm: VRM, dials: readonly string[]): AnimationClip {
  const tracks: KeyframeTrack[] = [];
  const take = (track: KeyframeTrack, name: string): void => {
    track.name = name;
    tracks.push(track);
  };
  const body = createVRMAnimationHumanoidTracks(animation, vrm.humanoid, vrm.meta.metaVersion);
  for (const [bone, track] of body.rotation) take(track, `${bone}.quaternion`);
  for (const [bone, track] of body.translation) take(track, `${bone}.position`);
  if (vrm.expressionManager) {
    const { preset, custom } = createVRMAnimationExpressionTracks(animation, vrm.expressionManager);
    for (const [name, track] of [...preset, ...custom]) {
      // The mouth belongs to the voice.
      const index = (VOWELS as readonly string[]).includes(name) ? -1 : dials.indexOf(name);
      if (index >= 0) take(track, `${dialName(index)}.weight`);
    }
  }
  const gaze = createVRMAnimationLookAtTrack(animation, `${GAZE}.quaternion`);
  if (gaze) tracks.push(gaze);
  return new AnimationClip("", animation.duration, tracks);
}
