/** How she stands, breathes and looks about. Pure: time and state in, bone angles out. */
import type { FaceState } from "./protocol";

export interface Pose {
  /** Rotation of normalized bones, radians: x, y, z. */
  bones: Record<string, [number, number, number]>;
  /** Where she looks, in metres off the camera's middle: x, y. */
  gaze: [number, number];
}

/** Where the head and eyes go in each state: nod (x), turn (y), tilt (z), gaze x and y. */
type Bearing = [number, number, number, number, number];
const BEARING: Record<FaceState, Bearing> = {
  idle: [0, 0, 0, 0, 0],
  listening: [0.03, 0, 0.07, 0, 0],
  thinking: [-0.09, -0.16, -0.05, -0.55, 0.5],
  speaking: [0.01, 0, 0, 0, 0],
};
const BEARING_S = 0.35;

export class Motion {
  #time = 0;
  #bearing: Bearing = [0, 0, 0, 0, 0];
  #glance: [number, number] = [0, 0];
  #glanceIn = 1.5;

  constructor(private readonly random: () => number = Math.random) {}

  /** `energy` is how wide the mouth is open, 0–1: speech moves the head a little. */
  step(dtS: number, state: FaceState, energy: number): Pose {
    this.#time += dtS;
    const t = this.#time;
    const ease = 1 - Math.exp(-dtS / BEARING_S);
    const target = BEARING[state];
    this.#bearing = this.#bearing.map((now, i) => now + ((target[i] ?? 0) - now) * ease) as Bearing;
    this.#glanceIn -= dtS;
    if (this.#glanceIn <= 0) {
      this.#glanceIn = 0.8 + this.random() * 2.6;
      const wide = state === "idle" ? 0.22 : 0.08;
      this.#glance = [(this.random() - 0.5) * wide, (this.random() - 0.5) * wide * 0.6];
    }
    const [nod, turn, tilt, lookX, lookY] = this.#bearing;
    const breath = Math.sin(t * 1.7);
    const sway = Math.sin(t * 0.53);
    const drift = Math.sin(t * 0.31 + 1);
    const beat = energy * 0.035 * Math.sin(t * 6.1);
    return {
      bones: {
        hips: [0, sway * 0.012, drift * 0.008],
        spine: [0.015 + breath * 0.006, sway * 0.015, -drift * 0.012],
        chest: [breath * 0.012, sway * 0.012, 0],
        neck: [nod * 0.4 + beat * 0.5, turn * 0.4 + drift * 0.02, tilt * 0.4],
        head: [nod * 0.6 - breath * 0.008 + beat, turn * 0.6 + sway * 0.03, tilt * 0.6 + drift * 0.02],
        leftShoulder: [0, 0, breath * 0.008],
        rightShoulder: [0, 0, -breath * 0.008],
        leftUpperArm: [0.1, 0.06, -1.27 + breath * 0.012],
        rightUpperArm: [0.1, -0.06, 1.27 - breath * 0.012],
        leftLowerArm: [0, -0.28 - sway * 0.02, -0.06],
        rightLowerArm: [0, 0.28 - sway * 0.02, 0.06],
        leftHand: [0.08, 0, 0.05],
        rightHand: [0.08, 0, -0.05],
      },
      gaze: [lookX + this.#glance[0], lookY + this.#glance[1]],
    };
  }
}
