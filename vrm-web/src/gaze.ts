/** Where the eyes go, and how far the head follows. */
import { approach, clamp } from "./curves";
import type { FaceState } from "./protocol";
import { between, type Random } from "./random";

/** To the side and up, as parts of what the camera sees: 1 is the edge of the picture. */
export type Spot = readonly [number, number];

/** Time between two jumps of the eyes, s, and how far they go, by state. */
const SACCADE_S = [0.7, 3] as const;
const REACH: Record<FaceState, number> = { idle: 0.25, listening: 0.1, thinking: 0.18, speaking: 0.12 };
/** People look up and away to think. */
const AWAY: Spot = [-0.95, 0.85];
/** Time constants, s: eyes are at a new place before the head has set out. */
const EYES_S = 0.05;
const HEAD_S = 0.35;
/** What part of the way the head goes, and its bounds, radians for 1. */
const HEAD_SHARE = 0.16;
const HEAD_MOST = 0.3;
/** A glance this wide comes with a blink. */
const WIDE = 0.7;

export interface Look {
  eyes: Spot;
  /** Turn of the head to her left and nod, radians. */
  head: Spot;
  /** The eyes just set out for somewhere far from where they were. */
  wide: boolean;
}

export class Gaze {
  #jump: Spot = [0, 0];
  #jumpIn: number;
  #aim: Spot = [0, 0];
  #eyes: Spot = [0, 0];
  #head: Spot = [0, 0];

  constructor(private readonly random: Random) {
    this.#jumpIn = between(random, ...SACCADE_S);
  }

  /** `focus` is what she looks at: the cursor, a touch, or the camera at 0, 0. */
  step(dtS: number, state: FaceState, focus: Spot, amount: number): Look {
    this.#jumpIn -= dtS;
    if (this.#jumpIn <= 0) {
      this.#jumpIn = between(this.random, ...SACCADE_S);
      const reach = REACH[state] * Math.min(amount, 1);
      this.#jump = [between(this.random, -reach, reach), between(this.random, -reach, reach) * 0.6];
    }
    const aim = state === "thinking" ? AWAY : focus;
    const wide = Math.hypot(aim[0] - this.#aim[0], aim[1] - this.#aim[1]) > WIDE;
    this.#aim = aim;
    const to: Spot = [aim[0] + this.#jump[0], aim[1] + this.#jump[1]];
    this.#eyes = [approach(this.#eyes[0], to[0], dtS, EYES_S), approach(this.#eyes[1], to[1], dtS, EYES_S)];
    const turn = (part: number): number => clamp(part * HEAD_SHARE, -HEAD_MOST, HEAD_MOST);
    this.#head = [
      approach(this.#head[0], turn(aim[0]), dtS, HEAD_S),
      approach(this.#head[1], turn(-aim[1]), dtS, HEAD_S),
    ];
    return { eyes: this.#eyes, head: this.#head, wide };
  }
}
