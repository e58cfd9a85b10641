/** How she stands, breathes and talks with her body, before any gesture. Pure: time and state in, a pose out. */
import { approach } from "./curves";
import type { Spot } from "./gaze";
import { hand, type Pose } from "./pose";
import type { FaceState } from "./protocol";
import { between, type Random } from "./random";

/** Lean forward (x), nod, turn and tilt of the head in each state, radians. */
type Bearing = readonly [lean: number, nod: number, turn: number, tilt: number];
const BEARING: Record<FaceState, Bearing> = {
  idle: [0, 0, 0, 0],
  listening: [0.035, 0.02, 0, 0.08],
  thinking: [-0.015, 0, 0, -0.05],
  speaking: [0.015, 0.01, 0, 0],
};
const BEARING_S = 0.35;
/** Time between two shifts of weight from one leg to the other, s, and how long one takes. */
const SHIFT_EACH_S = [6, 15] as const;
const SHIFT_S = 0.9;
/** About one breath in four seconds. */
const BREATH = 1.6;
/** The voice is followed this fast, s. */
const ENERGY_S = 0.09;
const PHRASE_S = 0.45;

const HANDS = { ...hand("left", 0.22), ...hand("right", 0.22) };

export class Motion {
  #time = 0;
  #bearing: Bearing = [0, 0, 0, 0];
  #side = 0;
  #sideNow = 0;
  #shiftIn: number;
  #energy = 0;
  #phrase = 0;
  readonly #phases: readonly number[];

  constructor(private readonly random: Random) {
    this.#phases = Array.from({ length: 8 }, () => random() * Math.PI * 2);
    this.#shiftIn = between(random, ...SHIFT_EACH_S);
  }

  /** Slow and never quite the same: two waves whose periods do not fit. */
  #wander(which: number, speed: number): number {
    const phase = this.#phases[which] ?? 0;
    return (Math.sin(this.#time * speed + phase) + Math.sin(this.#time * speed * 0.618 + phase * 2.3)) / 2;
  }

  /** `energy` is how wide the mouth is open, 0–1; `head` the turn and nod that the gaze asks for. */
  step(dtS: number, state: FaceState, energy: number, head: Spot, amount: number): Pose {
    this.#time += dtS;
    const target = BEARING[state];
    const bear = (i: 0 | 1 | 2 | 3): number => approach(this.#bearing[i], target[i], dtS, BEARING_S);
    this.#bearing = [bear(0), bear(1), bear(2), bear(3)];
    this.#shiftIn -= dtS;
    if (this.#shiftIn <= 0) {
      this.#shiftIn = between(this.random, ...SHIFT_EACH_S);
      this.#side = this.#side > 0 ? between(this.random, -1, -0.3) : between(this.random, 0.3, 1);
    }
    this.#sideNow = approach(this.#sideNow, this.#side, dtS, SHIFT_S);
    this.#energy = approach(this.#energy, energy, dtS, ENERGY_S);
    this.#phrase = approach(this.#phrase, energy, dtS, PHRASE_S);

    const [lean, nod, turn, tilt] = this.#bearing;
    const side = this.#sideNow * amount;
    // Breath is what tells a figure from a picture; a little of it always stays.
    const breath = Math.sin(this.#time * BREATH) * Math.max(0.5, amount);
    const sway = this.#wander(0, 0.53) * amount;
    const drift = this.#wander(1, 0.37) * amount;
    const float = this.#wander(2, 0.71) * amount;
    // Stress falls where the voice rises over the phrase.
    const beat = (this.#energy - this.#phrase) * 0.16 * amount;
    const talk = this.#phrase * amount;
    const talkTurn = talk * this.#wander(3, 1.9) * 0.16;
    const talkTilt = talk * this.#wander(4, 1.5) * 0.1;
    const x = nod + head[1] - breath * 0.008 + beat + talk * this.#wander(5, 1.3) * 0.05;
    const y = turn + head[0] + sway * 0.035 + talkTurn;
    const z = tilt + drift * 0.03 - side * 0.012 + talkTilt;
    const leftTalk = talk * Math.max(0, this.#wander(6, 1.1));
    const rightTalk = talk * Math.max(0, this.#wander(7, 0.9));
    const hips = side * 0.028;
    return {
      bones: {
        hips: [0, sway * 0.012, hips],
        spine: [0.012 + lean + breath * 0.006, sway * 0.015, -hips * 0.8 - drift * 0.01],
        chest: [breath * 0.014 + lean * 0.4, sway * 0.012 + talkTurn * 0.2, -hips * 0.5],
        neck: [x * 0.4, y * 0.4, z * 0.4],
        head: [x * 0.6, y * 0.6, z * 0.6 + float * 0.012],
        leftShoulder: [0, 0, breath * 0.01],
        rightShoulder: [0, 0, -breath * 0.01],
        leftUpperArm: [0.08 - leftTalk * 0.3, 0.06, -1.27 + breath * 0.012 + hips * 0.5],
        rightUpperArm: [0.08 - rightTalk * 0.3, -0.06, 1.27 - breath * 0.012 + hips * 0.5],
        leftLowerArm: [0, -0.28 - sway * 0.02 - leftTalk * 1.3, -0.06],
        rightLowerArm: [0, 0.28 - sway * 0.02 + rightTalk * 1.3, 0.06],
        leftHand: [0.08, 0, 0.05 + leftTalk * 0.3],
        rightHand: [0.08, 0, -0.05 - rightTalk * 0.3],
        leftUpperLeg: [0, 0, -hips * 1.6],
        rightUpperLeg: [0, 0, -hips * 1.6],
        ...HANDS,
      },
      hips: [side * 0.012, -Math.abs(side) * 0.003, 0],
    };
  }
}
