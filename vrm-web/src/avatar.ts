/** Loads a VRM (1.0 or 0.x), poses it before it is ever seen, and puts weights and poses on it. */
import { Box3, MathUtils, Object3D, Vector3, type Scene } from "three";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
import { VRMLoaderPlugin, VRMUtils, type VRM, type VRMHumanBoneName } from "@pixiv/three-vrm";
import { MOODS, type Mood, type Weights } from "./expression";
import { VOWELS } from "./protocol";
import type { Pose } from "./motion";

/** Longest step of physics and animation; after a pause hair must not explode. */
const LONGEST_STEP_S = 1 / 20;

export class Avatar {
  readonly gaze = new Object3D();
  readonly #moods: Record<Mood, { name: string; scale: number } | null>;
  /** VRM 0.x models look the other way before they are turned, which turns two axes of their bones. */
  readonly #turned: number;

  private constructor(readonly vrm: VRM) {
    this.#turned = vrm.meta.metaVersion === "0" ? -1 : 1;
    const has = (name: string): boolean => vrm.expressionManager?.getExpression(name) != null;
    const find = (mood: Mood): { name: string; scale: number } | null => {
      if (has(mood)) return { name: mood, scale: 1 };
      // VRM 0.x knows no surprise; many models bring one of their own.
      const own = mood[0]?.toUpperCase() + mood.slice(1);
      if (has(own)) return { name: own, scale: 1 };
      return mood === "surprised" && has("relaxed") ? { name: "relaxed", scale: 0.3 } : null;
    };
    this.#moods = {
      happy: find("happy"),
      angry: find("angry"),
      sad: find("sad"),
      relaxed: find("relaxed"),
      surprised: find("surprised"),
    };
    if (vrm.lookAt) vrm.lookAt.target = this.gaze;
  }

  static async load(url: string, progress: (part: number) => void): Promise<Avatar> {
    const loader = new GLTFLoader();
    loader.register((parser) => new VRMLoaderPlugin(parser));
    const gltf = await loader.loadAsync(url, (event) => {
      if (event.total > 0) progress(event.loaded / event.total);
    });
    const vrm = gltf.userData["vrm"] as VRM | undefined;
    if (!vrm) throw new Error("the file holds no VRM avatar");
    VRMUtils.rotateVRM0(vrm);
    VRMUtils.removeUnnecessaryVertices(gltf.scene);
    VRMUtils.combineSkeletons(gltf.scene);
    vrm.scene.traverse((object) => {
      // Bounds do not follow the bones.
      object.frustumCulled = false;
    });
    return new Avatar(vrm);
  }

  addTo(scene: Scene): void {
    scene.add(this.vrm.scene, this.gaze);
  }

  /** Where the head is and how high the figure stands, for the camera. */
  measure(): { head: Vector3; top: number } {
    this.vrm.scene.updateMatrixWorld(true);
    const head = new Vector3();
    this.vrm.humanoid.getRawBoneNode("head")?.getWorldPosition(head);
    const top = new Box3().setFromObject(this.vrm.scene).max.y;
    return { head, top };
  }

  pose(pose: Pose): void {
    for (const [bone, [x, y, z]] of Object.entries(pose.bones)) {
      const node = this.vrm.humanoid.getNormalizedBoneNode(bone as VRMHumanBoneName);
      node?.rotation.set(x * this.#turned, y, z * this.#turned);
    }
  }

  /** Writes the face; the lips last, so that nothing else moves the mouth. */
  express(weights: Weights): void {
    const manager = this.vrm.expressionManager;
    if (!manager) return;
    for (const mood of MOODS) {
      const shown = this.#moods[mood];
      if (shown && shown.scale === 1) manager.setValue(shown.name, weights.moods[mood]);
    }
    const surprise = this.#moods.surprised;
    if (surprise && surprise.scale < 1) {
      manager.setValue("relaxed", Math.min(1, weights.moods.relaxed + weights.moods.surprised * surprise.scale));
    }
    manager.setValue("blink", weights.blink);
    for (const vowel of VOWELS) manager.setValue(vowel, weights.mouth[vowel]);
  }

  update(dtS: number): void {
    this.vrm.update(MathUtils.clamp(dtS, 0, LONGEST_STEP_S));
  }

  /** After a pause or a jump: hair and cloth begin from rest. */
  settle(): void {
    this.vrm.springBoneManager?.reset();
  }

  dispose(): void {
    this.vrm.scene.removeFromParent();
    this.gaze.removeFromParent();
    VRMUtils.deepDispose(this.vrm.scene);
  }
}
