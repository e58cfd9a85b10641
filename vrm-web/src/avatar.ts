/** Loads a VRM (1.0 or 0.x), poses it before it is ever seen, and puts weights and poses on it. */
import { Box3, Euler, MathUtils, Object3D, Quaternion, Texture, Vector3, type Scene } from "three";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
import { VRMHumanBoneList, VRMLoaderPlugin, VRMUtils, type VRM, type VRMExpressionManager, type VRMHumanBoneName } from "@pixiv/three-vrm";
import type { Override, Traits, Weights } from "./expression";
import { substeps } from "./pace";
import type { Pose } from "./pose";
import { VOWELS } from "./protocol";
import { GAZE, Puppet } from "./puppet";
import { fitTextures, texturesOf } from "./textures";
import type { Joints } from "./touch";

/** Expressions that are not a mood: they are written by themselves. */
const OWN_USE = new Set<string>([...VOWELS, "blink", "blinkLeft", "blinkRight", "lookUp", "lookDown", "lookLeft", "lookRight", "neutral"]);

export interface Licence {
  name: string;
  authors: string;
  licence: string;
}

export class Avatar {
  readonly gaze = new Object3D();
  readonly traits: Traits;
  readonly licence: Licence;
  readonly puppet: Puppet;
  /** All expressions; a clip's dials are numbered as these. */
  readonly dials: readonly string[];
  /** VRM 0.x models look the other way before they are turned, which turns two axes of their bones. */
  readonly #turned: 1 | -1;
  readonly #hipsHeight: number;
  readonly #bones: { name: string; node: Object3D }[] = [];
  readonly #euler = new Euler();
  readonly #turn = new Quaternion();
  readonly #textures: Set<Texture>;

  private constructor(readonly vrm: VRM) {
    const zero = vrm.meta.metaVersion === "0";
    this.#turned = zero ? -1 : 1;
    for (const name of VRMHumanBoneList) {
      const node = vrm.humanoid.getNormalizedBoneNode(name);
      if (node) this.#bones.push({ name, node });
    }
    this.#hipsHeight = vrm.humanoid.normalizedRestPose.hips?.position?.[1] ?? 1;
    const expressions = vrm.expressionManager?.expressions ?? [];
    this.dials = expressions.map((it) => it.expressionName);
    const moods = expressions.filter((it) => !OWN_USE.has(it.expressionName));
    const mouth: Record<string, Override> = {};
    for (const mood of moods) mouth[mood.expressionName] = mood.overrideMouth;
    this.traits = {
      names: moods.map((it) => it.expressionName),
      mouth,
      lids: moods.some((it) => it.overrideBlink !== "none"),
    };
    this.licence = licenceOf(vrm);
    this.puppet = new Puppet(this.#bones.map((it) => it.name), this.dials.length);
    if (vrm.lookAt) vrm.lookAt.target = this.gaze;
    this.#textures = texturesOf(vrm.scene);
  }

  static async parse(data: ArrayBuffer, longestSide: number): Promise<Avatar> {
    if (new TextDecoder("latin1").decode(data.slice(0, 4)) !== "glTF") throw new Error("the file is not a VRM");
    // The third word of the header is the length of the whole.
    if (data.byteLength < 12 || new DataView(data).getUint32(8, true) > data.byteLength) throw new Error("the file is cut short");
    const loader = new GLTFLoader();
    loader.register((parser) => new VRMLoaderPlugin(parser));
    const gltf = await loader.parseAsync(data, "");
    const vrm = gltf.userData["vrm"] as VRM | undefined;
    if (!vrm) {
      VRMUtils.deepDispose(gltf.scene);
      throw new Error("the file holds no VRM avatar");
    }
    VRMUtils.rotateVRM0(vrm);
    VRMUtils.removeUnnecessaryVertices(gltf.scene);
    VRMUtils.combineSkeletons(gltf.scene);
    vrm.scene.traverse((object) => {
      // Bounds do not follow the bones.
      object.frustumCulled = false;
    });
    fitTextures(vrm.scene, longestSide);
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

  /** Where joints are now, for touches; `unit` is the height of the head. */
  joints(unit: number): Joints {
    const joints: Joints = {};
    const at = (bone: VRMHumanBoneName): Vector3 | undefined => this.vrm.humanoid.getRawBoneNode(bone)?.getWorldPosition(new Vector3());
    const head = this.vrm.humanoid.getNormalizedBoneNode("head");
    const onHead = (x: number, y: number, z: number): Vector3 | undefined =>
      head?.localToWorld(new Vector3(x * this.#turned, y, z * this.#turned).multiplyScalar(unit));
    const put = (joint: keyof Joints, point: Vector3 | undefined): void => {
      if (point) joints[joint] = point;
    };
    put("head", onHead(0, 0.35, 0));
    put("crown", onHead(0, 0.55, 0));
    for (const [side, sign] of [["left", 1], ["right", -1]] as const) {
      put(`${side}Cheek`, onHead(sign * 0.26, 0.24, 0.42));
      put(`${side}UpperArm`, at(`${side}UpperArm`));
      put(`${side}LowerArm`, at(`${side}LowerArm`));
      const hand = at(`${side}Hand`);
      put(`${side}Hand`, hand);
      put(`${side}Fingers`, at(`${side}MiddleProximal`) ?? hand);
    }
    return joints;
  }

  /** The procedural pose, with a clip over it as far as one plays. */
  pose(pose: Pose): void {
    const { puppet } = this;
    for (const { name, node } of this.#bones) {
      const [x, y, z] = pose.bones[name] ?? [0, 0, 0];
      this.#turn.setFromEuler(this.#euler.set(x * this.#turned, y, z * this.#turned));
      const clip = puppet.weight > 0 ? puppet.turn(name) : null;
      if (clip) this.#turn.slerp(clip, puppet.weight);
      node.quaternion.copy(this.#turn);
      if (name !== "hips") continue;
      const [hx, hy, hz] = pose.hips;
      node.position.set(hx * this.#hipsHeight * this.#turned, (1 + hy) * this.#hipsHeight, hz * this.#hipsHeight * this.#turned);
      const place = puppet.weight > 0 ? puppet.place(name) : null;
      if (place) node.position.lerp(place, puppet.weight);
    }
  }

  /** Writes the face; the lips last, so that nothing else moves the mouth. */
  express(weights: Weights): void {
    const manager = this.vrm.expressionManager;
    if (!manager) return;
    const { puppet } = this;
    const clip = (name: string): number => (puppet.weight > 0 ? puppet.dial(this.dials.indexOf(name)) * puppet.weight : 0);
    for (const name of this.traits.names) {
      manager.setValue(name, Math.max((weights.moods[name] ?? 0) + (weights.hint[name] ?? 0), clip(name)));
    }
    this.#blink(manager, Math.max(weights.blink, clip("blink")));
    for (const vowel of VOWELS) manager.setValue(vowel, weights.mouth[vowel]);
  }

  #blink(manager: VRMExpressionManager, weight: number): void {
    if (manager.getExpression("blink")) {
      manager.setValue("blink", weight);
      return;
    }
    // Some models close each eye by itself only.
    manager.setValue("blinkLeft", weight);
    manager.setValue("blinkRight", weight);
  }

  /** Everything that follows from pose and weights, in the order that `VRM.update` has. */
  update(dtS: number): void {
    const { vrm, puppet } = this;
    vrm.humanoid.update();
    const gaze = puppet.weight > 0.5 ? puppet.turn(GAZE) : null;
    if (vrm.lookAt) {
      vrm.lookAt.autoUpdate = gaze === null;
      if (gaze) {
        this.#euler.setFromQuaternion(gaze, "YXZ");
        vrm.lookAt.yaw = MathUtils.RAD2DEG * this.#euler.y;
        vrm.lookAt.pitch = MathUtils.RAD2DEG * this.#euler.x;
        this.#euler.order = "XYZ";
      }
      vrm.lookAt.update(dtS);
    }
    vrm.expressionManager?.update();
    vrm.nodeConstraintManager?.update();
    // Springs behave the same at any frame rate only if their own steps are about the same.
    const { count, stepS } = substeps(dtS);
    for (let step = 0; step < count; step++) vrm.springBoneManager?.update(stepS);
    for (const material of vrm.materials ?? []) (material as { update?: (dtS: number) => void }).update?.(dtS);
  }

  /** After a pause or a jump: hair and cloth begin from rest. */
  settle(): void {
    this.vrm.scene.updateMatrixWorld(true);
    this.vrm.springBoneManager?.reset();
  }

  dispose(): void {
    this.vrm.scene.removeFromParent();
    this.gaze.removeFromParent();
    this.puppet.dispose();
    VRMUtils.deepDispose(this.vrm.scene);
    for (const texture of this.#textures) {
      texture.dispose();
      const image: unknown = texture.source.data;
      if (typeof ImageBitmap !== "undefined" && image instanceof ImageBitmap) image.close();
    }
  }
}

function licenceOf({ meta }: VRM): Licence {
  if (meta.metaVersion === "0") {
    return { name: meta.title ?? "", authors: meta.author ?? "", licence: meta.otherLicenseUrl || (meta.licenseName ?? "") };
  }
  return { name: meta.name, authors: meta.authors.join(", "), licence: meta.otherLicenseUrl ?? meta.licenseUrl };
}
