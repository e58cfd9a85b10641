import { describe, expect, it } from "vitest";
import { ACTIONS, LIBRARY, sample } from "../src/actions";
import { Gaze } from "../src/gaze";
import { Life, type Sense } from "../src/life";
import { CLOSED } from "../src/line";
import { Motion } from "../src/motion";
import { FADE_S, Performer } from "../src/performer";
import { mirrored, overlay, type Pose } from "../src/pose";
import { seeded } from "../src/random";
import { DEFAULTS, type SceneSettings } from "../src/settings";

const SENSE: Sense = {
  state: "idle",
  feeling: { emotion: "neutral", intensity: 0 },
  mouth: { ...CLOSED },
  speaking: false,
  userSpeaks: false,
  cursor: null,
};
const life = (seed: number, settings: Partial<SceneSettings> = {}): Life => new Life(seeded(seed), { ...DEFAULTS, ...settings });

/** Lives on for so long; what was done, and how far the torso moved at most. */
function live(her: Life, seconds: number, sense: Partial<Sense> = {}): { done: Set<string>; torso: number; mood: number } {
  const seen = { done: new Set<string>(), torso: 0, mood: 0 };
  for (let t = 0; t < seconds; t += 0.025) {
    const { pose, face } = her.step(0.025, { ...SENSE, ...sense });
    if (her.performer.current) seen.done.add(her.performer.current);
    for (const bone of ["hips", "spine", "chest"]) for (const angle of pose.bones[bone] ?? []) seen.torso = Math.max(seen.torso, Math.abs(angle));
    seen.mood = Math.max(seen.mood, ...Object.values(face.moods));
  }
  return seen;
}

const stand = (): Pose => new Motion(seeded(1)).step(0, "idle", 0, [0, 0], 1);

describe("the stance", () => {
  it("has the arms down in the very first pose", () => {
    const { bones } = stand();
    expect(bones["leftUpperArm"]?.[2]).toBeLessThan(-1.1);
    expect(bones["rightUpperArm"]?.[2]).toBeGreaterThan(1.1);
  });

  it("stays small in every state, breathes always, and moves less when asked to", () => {
    for (const state of ["idle", "listening", "thinking", "speaking"] as const) {
      const moved = (amount: number): number => {
        const motion = new Motion(seeded(3));
        let [low, high, most] = [Infinity, -Infinity, 0];
        for (let t = 0; t < 60; t += 0.02) {
          const { bones } = motion.step(0.02, state, state === "speaking" ? Math.abs(Math.sin(t * 9)) : 0, [0, 0], amount);
          for (const bone of ["head", "neck", "spine", "chest", "hips"]) for (const angle of bones[bone] ?? []) most = Math.max(most, Math.abs(angle));
          const turn = bones["head"]?.[1] ?? 0;
          [low, high] = [Math.min(low, turn), Math.max(high, turn)];
        }
        expect(most).toBeLessThan(0.3);
        return high - low;
      };
      expect(moved(1)).toBeGreaterThan(moved(0.3));
      expect(moved(0)).toBe(0);
    }
    const still = new Motion(seeded(3));
    const breaths = Array.from({ length: 200 }, () => still.step(0.05, "idle", 0, [0, 0], 0).bones["chest"]?.[0] ?? 0);
    expect(Math.max(...breaths) - Math.min(...breaths)).toBeGreaterThan(0.005);
  });

  it("shifts its weight from one leg to the other", () => {
    const motion = new Motion(seeded(5));
    const sides = new Set<number>();
    for (let t = 0; t < 60; t += 0.05) {
      const { hips } = motion.step(0.05, "idle", 0, [0, 0], 1);
      if (Math.abs(hips[0]) > 0.003) sides.add(Math.sign(hips[0]));
    }
    expect(sides).toEqual(new Set([1, -1]));
  });

  it("moves the head with the voice", () => {
    const range = (energy: (t: number) => number): number => {
      const motion = new Motion(seeded(2));
      const nods = [];
      for (let t = 0; t < 5; t += 0.02) nods.push(motion.step(0.02, "speaking", energy(t), [0, 0], 1).bones["head"]?.[0] ?? 0);
      return Math.max(...nods) - Math.min(...nods);
    };
    expect(range((t) => (Math.sin(t * 14) > 0 ? 0.9 : 0))).toBeGreaterThan(2 * range(() => 0));
  });
});

describe("the gaze", () => {
  it("jumps in small steps about its focus and leads the head", () => {
    const gaze = new Gaze(seeded(9));
    let jumps = 0;
    let last = 0;
    for (let t = 0; t < 60; t += 0.02) {
      const { eyes } = gaze.step(0.02, "idle", [0, 0], 1);
      expect(Math.abs(eyes[0])).toBeLessThan(0.3);
      if (Math.abs(eyes[0] - last) > 0.02) jumps++;
      last = eyes[0];
    }
    expect(jumps).toBeGreaterThan(15);
    const look = gaze.step(0.1, "idle", [1.5, 0], 1);
    expect(look.wide).toBe(true);
    expect(look.eyes[0]).toBeGreaterThan(1);
    expect(look.head[0]).toBeGreaterThan(0);
    expect(look.head[0]).toBeLessThan(0.1);
  });

  it("goes up and away for thought, to the cursor only if it may", () => {
    const end = (settings: Partial<SceneSettings>, sense: Partial<Sense>): readonly [number, number] => {
      const her = life(1, settings);
      let eyes: readonly [number, number] = [0, 0];
      for (let t = 0; t < 3; t += 0.05) ({ eyes } = her.step(0.05, { ...SENSE, ...sense }));
      return eyes;
    };
    expect(end({}, { state: "thinking" })[1]).toBeGreaterThan(0.5);
    expect(end({}, { cursor: [1, 0] })[0]).toBeLessThan(0.3);
    expect(end({ look: "cursor" }, { cursor: [1, 0] })[0]).toBeGreaterThan(0.7);
  });
});

describe("gestures", () => {
  it("are twelve, begin and end where she stands, and bend nothing that does not bend", () => {
    expect(ACTIONS).toHaveLength(12);
    for (const name of ACTIONS) {
      const { seconds, keys } = LIBRARY[name];
      expect(seconds, name).toBeGreaterThan(2 * FADE_S);
      expect(keys[0]?.at, name).toBe(0);
      expect(keys.at(-1)?.at, name).toBe(seconds);
      for (let t = 0; t <= seconds; t += 0.05) {
        for (const [bone, angles] of Object.entries(sample(LIBRARY[name], t))) {
          const most = /LowerArm/.test(bone) ? 2.4 : /Upper|Intermediate|Proximal|Distal/.test(bone) ? 1.65 : 0.6;
          for (const angle of angles) expect(Math.abs(angle), `${name} ${bone}`).toBeLessThanOrEqual(most);
        }
      }
      for (const part of ["head", "chest", "spine"]) {
        const rest = sample(LIBRARY[name], seconds)[part] ?? [0, 0, 0];
        for (const angle of rest) expect(Math.abs(angle), `${name} ${part}`).toBeLessThan(0.05);
      }
    }
  });

  it("never jump: not at their start, their end, nor from one to the next", () => {
    const performer = new Performer();
    const arm = (): number => {
      const pose = stand();
      performer.step(0.02, pose, 1);
      return pose.bones["rightUpperArm"]?.[2] ?? 0;
    };
    let last = arm();
    performer.play("cheer");
    performer.play("wave");
    let most = 0;
    const seen: (string | null)[] = [];
    for (let t = 0; t < 8; t += 0.02) {
      if (t > 3 && t < 3.02) performer.play("think", true);
      const now = arm();
      most = Math.max(most, Math.abs(now - last));
      last = now;
      if (seen.at(-1) !== performer.current) seen.push(performer.current);
    }
    expect(most).toBeLessThan(0.16);
    expect(seen.filter((it) => it !== null)).toEqual(["cheer", "wave", "think"]);
    expect(performer.idle).toBe(true);
    expect(last).toBeCloseTo(stand().bones["rightUpperArm"]?.[2] ?? 0, 5);
  });

  it("wait in a short queue, once each in a row, and go when told to", () => {
    const performer = new Performer();
    for (const name of ["nod", "nod", "wave", "nod", "wave", "bow"] as const) performer.play(name);
    const seen: string[] = [];
    for (let t = 0; t < 12; t += 0.05) {
      performer.step(0.05, stand(), 1);
      if (performer.current && seen.at(-1) !== performer.current) seen.push(performer.current);
    }
    expect(seen).toEqual(["nod", "wave", "nod"]);
    performer.play("stretch");
    performer.step(0.5, stand(), 1);
    performer.stop();
    for (let t = 0; t < FADE_S + 0.1; t += 0.05) performer.step(0.05, stand(), 1);
    expect(performer.idle).toBe(true);
  });

  it("add to the torso and take the arms over", () => {
    const pose = { bones: { head: [0.1, 0, 0], leftHand: [0.1, 0, 0] }, hips: [0, 0, 0] } as Pose;
    overlay(pose, { head: [0.2, 0, 0], leftHand: [0.5, 0, 0] }, 1, 0.5);
    expect(pose.bones["head"]?.[0]).toBeCloseTo(0.2);
    expect(pose.bones["leftHand"]?.[0]).toBeCloseTo(0.5);
    expect(mirrored({ rightHand: [1, 2, 3], head: [1, 2, 3] })).toEqual({ leftHand: [1, -2, -3], head: [1, -2, -3] });
  });
});

describe("life", () => {
  it("is the same for the same seed", () => {
    const day = (seed: number): unknown => {
      const her = life(seed);
      live(her, 60);
      return her.step(0.02, SENSE);
    };
    expect(day(11)).toEqual(day(11));
    expect(day(11)).not.toEqual(day(12));
  });

  it("greets, fidgets when nothing happens, and does neither when calm", () => {
    const lively = life(2);
    lively.greet();
    const { done } = live(lively, 120);
    expect([...done].some((it) => it === "wave" || it === "bow")).toBe(true);
    expect([...done].some((it) => ["sway", "lookAway", "stretch"].includes(it))).toBe(true);
    const calm = life(2, { calm: true, motion: 0.3 });
    calm.greet();
    const quiet = live(calm, 120);
    expect(quiet.done.size).toBe(0);
    expect(quiet.torso).toBeLessThan(0.06);
  });

  it("puts a hand to the chin over a long thought, and takes it away for the answer", () => {
    const her = life(3);
    expect(live(her, 2, { state: "thinking" }).done.size).toBe(0);
    expect(live(her, 2, { state: "thinking" }).done).toEqual(new Set(["think"]));
    live(her, FADE_S + 0.1, { state: "speaking" });
    expect(her.performer.current).toBeNull();
  });

  it("nods now and then to someone who speaks, not to silence", () => {
    expect(live(life(4), 14, { state: "listening", userSpeaks: true }).done).toEqual(new Set(["nod"]));
    expect(live(life(4), 14, { state: "listening" }).done.size).toBe(0);
  });

  it("shows strong feelings with the body, weak ones with the face only", () => {
    const gestures = (intensity: number): number => {
      let count = 0;
      for (let seed = 0; seed < 20; seed++) count += live(life(seed), 1, { feeling: { emotion: "excited", intensity } }).done.size;
      return count;
    };
    expect(gestures(0.9)).toBeGreaterThan(8);
    expect(gestures(0.2)).toBe(0);
  });

  it("feels a touch, cools down, and forgets it", () => {
    const her = life(5);
    expect(her.touch("head")).toBe(true);
    expect(her.touch("head")).toBe(false);
    expect(her.touch("cheek")).toBe(true);
    expect(live(her, 1.6).mood).toBeGreaterThan(0.2);
    expect(her.touch("head")).toBe(true);
    live(her, 6);
    expect(Object.values(her.expressions.weights.moods).every((it) => it === 0)).toBe(true);
  });

  it("ends lips and gestures when she is cut off", () => {
    const her = life(6);
    her.performer.play("cheer");
    live(her, 1, { state: "speaking", speaking: true, mouth: { ...CLOSED, aa: 1 } });
    her.interrupted();
    expect(her.expressions.weights.mouth.aa).toBe(0);
    live(her, FADE_S + 0.1);
    expect(her.performer.idle).toBe(true);
  });
});
