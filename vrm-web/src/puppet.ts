/**
 * A shadow of the avatar that clips move. The mixer never writes to the avatar itself: it leaves out
 * values that did not change, which would mix with what is written over them each frame.
 */
import { AnimationMixer, LoopOnce, Object3D, Quaternion, Vector3, type AnimationAction, type AnimationClip } from "three";
import { clamp, smooth } from "./curves";

/** A clip fades in, out, and into the next one, in this time, s. */
const FADE_S = 0.4;

/** A node whose number a clip can move, as an expression's weight. */
class Dial extends Object3D {
  weight = 0;
}

/** Expressions are numbered: their names may hold signs that tracks can't. */
export const dialName = (index: number): string => `dial${index}`;
export const GAZE = "gaze";

export class Puppet {
  /** How much of what shows is the clip's, 0–1. */
  weight = 0;
  /** The tracks of the clip: only these have values. */
  readonly #tracks = new Set<string>();
  readonly #root = new Object3D();
  readonly #nodes = new Map<string, Object3D>();
  readonly #dials: Dial[];
  readonly #mixer = new AnimationMixer(this.#root);
  #action: AnimationAction | null = null;
  #fade = 0;
  #leaving = false;

  constructor(bones: readonly string[], dials: number) {
    for (const name of [...bones, GAZE]) {
      const node = new Object3D();
      node.name = name;
      this.#nodes.set(name, node);
      this.#root.add(node);
    }
    this.#dials = Array.from({ length: dials }, (_, index) => {
      const dial = new Dial();
      dial.name = dialName(index);
      this.#root.add(dial);
      return dial;
    });
  }

  get playing(): string | null {
    return this.#action && !this.#leaving ? this.#action.getClip().name : null;
  }

  play(clip: AnimationClip): void {
    const action = this.#mixer.clipAction(clip);
    action.reset().setLoop(LoopOnce, 1);
    action.clampWhenFinished = true;
    if (this.#action && this.#action !== action && this.weight > 0) {
      const before = this.#action;
      before.fadeOut(FADE_S);
      action.fadeIn(FADE_S);
    }
    action.play();
    this.#action = action;
    this.#leaving = false;
    this.#tracks.clear();
    for (const track of clip.tracks) this.#tracks.add(track.name);
  }

  stop(): void {
    this.#leaving = true;
  }

  update(dtS: number): void {
    const action = this.#action;
    if (!action) return;
    this.#mixer.update(dtS);
    const { duration } = action.getClip();
    if (action.time >= duration - Math.min(FADE_S, duration / 2)) this.#leaving = true;
    this.#fade = clamp(this.#fade + (this.#leaving ? -dtS : dtS) / FADE_S, 0, 1);
    this.weight = smooth(this.#fade);
    if (this.#leaving && this.#fade === 0) {
      this.#forget();
    }
  }

  turn(bone: string): Quaternion | null {
    return this.#tracks.has(`${bone}.quaternion`) ? (this.#nodes.get(bone)?.quaternion ?? null) : null;
  }

  place(bone: string): Vector3 | null {
    return this.#tracks.has(`${bone}.position`) ? (this.#nodes.get(bone)?.position ?? null) : null;
  }

  dial(index: number): number {
    return this.#tracks.has(`${dialName(index)}.weight`) ? (this.#dials[index]?.weight ?? 0) : 0;
  }

  #forget(): void {
    this.#mixer.stopAllAction();
    this.#mixer.uncacheRoot(this.#root);
    this.#action = null;
  }

  dispose(): void {
    this.#forget();
  }
}
