import { describe, expect, it } from "vitest";
import { ServerClock } from "../src/clock";
import { pauseMs } from "../src/connection";
import { ExpressionDriver, moodsOf, strongest } from "../src/expression";
import { CLOSED, subtitleAt } from "../src/line";
import { Motion } from "../src/motion";
import { Transcript } from "../src/transcript";

const NEUTRAL = { emotion: "neutral", intensity: 0 };
const OPEN = { ...CLOSED, aa: 0.9 };

describe("lips", () => {
  it("keeps the two strongest vowels and no more than one mouth", () => {
    const kept = strongest({ aa: 0.9, ih: 0.1, ou: 0.6, ee: 0.3, oh: 0.2 });
    expect(kept.aa + kept.ou).toBeCloseTo(1);
    expect(kept.aa / kept.ou).toBeCloseTo(1.5);
    expect([kept.ih, kept.ee, kept.oh]).toEqual([0, 0, 0]);
  });

  it("opens within 100 ms, is fully closed within 200 ms, and at once on an interrupt", () => {
    const driver = new ExpressionDriver(() => 0.9);
    for (let t = 0; t < 100; t += 20) driver.step(20, NEUTRAL, OPEN, true);
    expect(driver.weights.mouth.aa).toBeGreaterThan(0.8);
    for (let t = 0; t < 180; t += 20) driver.step(20, NEUTRAL, CLOSED, false);
    expect(driver.weights.mouth.aa).toBe(0);
    driver.step(200, NEUTRAL, OPEN, true);
    driver.shut();
    expect(driver.weights.mouth.aa).toBe(0);
  });
});

describe("moods", () => {
  it("fade in and decay to nothing", () => {
    const driver = new ExpressionDriver(() => 0.9);
    const happy = { emotion: "happy", intensity: 1 };
    driver.step(20, happy, CLOSED, false);
    expect(driver.weights.moods.happy).toBeGreaterThan(0);
    expect(driver.weights.moods.happy).toBeLessThan(0.2);
    for (let t = 0; t < 1500; t += 20) driver.step(20, happy, CLOSED, false);
    expect(driver.weights.moods.happy).toBeGreaterThan(0.95);
    for (let t = 0; t < 1500; t += 20) driver.step(20, NEUTRAL, CLOSED, false);
    expect(driver.weights.moods.happy).toBe(0);
  });

  it("leave the lips room while she speaks", () => {
    const driver = new ExpressionDriver(() => 0.9);
    for (let t = 0; t < 2000; t += 20) driver.step(20, { emotion: "sad", intensity: 1 }, OPEN, true);
    expect(driver.weights.moods.sad).toBeCloseTo(0.7, 2);
  });

  it("mixes every feeling from what models have", () => {
    const names = ["happy", "sad", "angry", "surprised", "relaxed", "thinking", "shy", "fearful", "disgusted", "excited", "confused", "loving"];
    for (const emotion of names) {
      const sum = Object.values(moodsOf({ emotion, intensity: 1 })).reduce((a, b) => a + b, 0);
      expect(sum, emotion).toBeGreaterThan(0);
    }
    expect(Object.values(moodsOf({ emotion: "unheard-of", intensity: 1 }))).toEqual([0, 0, 0, 0, 0]);
  });
});

describe("blinking", () => {
  const blinks = (emotion: string): number => {
    const driver = new ExpressionDriver(() => 0.5);
    let most = 0;
    for (let t = 0; t < 10_000; t += 20) {
      most = Math.max(most, driver.step(20, { emotion, intensity: 1 }, CLOSED, false).blink);
    }
    return most;
  };
  it("closes the eyes now and then, less where a mood narrows them", () => {
    expect(blinks("neutral")).toBeGreaterThan(0.95);
    expect(blinks("happy")).toBeLessThan(0.1);
  });
});

describe("the server's clock", () => {
  it("trusts the event that travelled fastest", () => {
    const clock = new ServerClock();
    clock.observe(1_000, 5_040);
    clock.observe(1_100, 5_105);
    clock.observe(1_200, 5_500);
    expect(clock.at(5_505)).toBeCloseTo(1_500, 0);
  });
});

describe("the way back to the server", () => {
  it("waits longer each time, up to a bound, and not all at once", () => {
    expect([1, 2, 3, 9].map((attempt) => pauseMs(attempt, 0.5))).toEqual([500, 1000, 2000, 8000]);
    expect(pauseMs(1, 0)).toBeLessThan(pauseMs(1, 1));
  });
});

describe("motion", () => {
  it("has the arms down in the very first pose", () => {
    const pose = new Motion(() => 0.5).step(0, "idle", 0);
    expect(pose.bones["leftUpperArm"]?.[2]).toBeLessThan(-1.1);
    expect(pose.bones["rightUpperArm"]?.[2]).toBeGreaterThan(1.1);
  });

  it("looks away while thinking and stays small always", () => {
    const motion = new Motion();
    let pose = motion.step(0.02, "thinking", 0);
    for (let i = 0; i < 200; i++) pose = motion.step(0.02, "thinking", 1);
    expect(pose.gaze[1]).toBeGreaterThan(0.3);
    for (const bone of ["head", "neck", "spine", "chest", "hips"]) {
      for (const angle of pose.bones[bone] ?? []) expect(Math.abs(angle)).toBeLessThan(0.3);
    }
  });
});

describe("the transcript", () => {
  it("shows a reply as it is spoken and then what was heard of it", () => {
    const transcript = new Transcript();
    transcript.restore([{ turn: 1, from_user: true, text: "Before", interrupted: false }]);
    transcript.apply({ type: "transcript", at_ms: 0, turn: null, text: "How are", is_final: false });
    expect(transcript.hearing).toBe("How are");
    transcript.apply({ type: "turn_started", at_ms: 0, turn: 2, source: "voice", user_text: "How are you?", draft: false });
    expect(transcript.hearing).toBe("");
    transcript.speaking({ turn: 2, source: "voice", user_text: "", said: "Fine." }, "And");
    expect(transcript.lines.at(-1)).toMatchObject({ text: "Fine. And", note: "speaking" });
    transcript.apply({ type: "turn_completed", at_ms: 0, turn: 2, content: "Fine.", interrupted: true });
    expect(transcript.lines.map((line) => line.text)).toEqual(["Before", "How are you?", "Fine."]);
    expect(transcript.lines.at(-1)?.note).toBe("interrupted");
    transcript.apply({ type: "turn_completed", at_ms: 0, turn: 2, content: "", interrupted: true });
    expect(transcript.lines).toHaveLength(2);
  });
});

describe("the line under the avatar", () => {
  it("counts letters, not bytes", () => {
    const segment = {
      id: { turn: 1, index: 0 },
      display: "Caf\u00e9 ouvert \u{1f600}",
      spoken: "Caf\u00e9 ouvert",
      feeling: NEUTRAL,
      visemes: [],
      duration_ms: 1000,
      media: "m",
      words: [
        [0, 0],
        [6, 500],
      ] as [number, number][],
    };
    expect(subtitleAt(segment, 100).said).toBe("Caf\u00e9");
    expect(subtitleAt(segment, 600).said).toBe(segment.display);
  });
});
