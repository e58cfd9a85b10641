import { describe, expect, it } from "vitest";
import { Blink, DOUBLE_CHANCE, DOUBLE_S, INTERVAL_S, LENGTH_S } from "../src/blink";
import { EMOTIONS, Palette } from "../src/emotion";
import { ExpressionDriver, PRESETS, strongest } from "../src/expression";
import { CLOSED } from "../src/line";
import { seeded } from "../src/random";

const NEUTRAL = { emotion: "neutral", intensity: 0 };
const OPEN = { ...CLOSED, aa: 0.9 };

/** A driver after `ms` of the same, in steps of 20 ms. */
function after(driver: ExpressionDriver, ms: number, feeling = NEUTRAL, mouth = { ...CLOSED }, speaking = false): ExpressionDriver {
  for (let t = 0; t < ms; t += 20) driver.step(20, feeling, mouth, speaking, true);
  return driver;
}

describe("lips", () => {
  it("keeps the two strongest vowels and no more than one mouth", () => {
    const kept = strongest({ aa: 0.9, ih: 0.1, ou: 0.6, ee: 0.3, oh: 0.2 });
    expect(kept.aa + kept.ou).toBeCloseTo(1);
    expect(kept.aa / kept.ou).toBeCloseTo(1.5);
    expect([kept.ih, kept.ee, kept.oh]).toEqual([0, 0, 0]);
  });

  it("opens within 100 ms, is fully closed within 200 ms, and at once on an interrupt", () => {
    const driver = after(new ExpressionDriver(seeded(1)), 100, NEUTRAL, OPEN, true);
    expect(driver.weights.mouth.aa).toBeGreaterThan(0.8);
    after(driver, 180);
    expect(driver.weights.mouth.aa).toBe(0);
    driver.step(200, NEUTRAL, OPEN, true, true);
    driver.step(125, NEUTRAL, CLOSED, false, true);
    expect(driver.weights.mouth.aa, "at eight frames a second too").toBe(0);
    driver.step(200, NEUTRAL, OPEN, true, true);
    driver.shut();
    expect(driver.weights.mouth.aa).toBe(0);
  });
});

describe("moods", () => {
  const happy = { emotion: "happy", intensity: 1 };

  it("fade in and decay to nothing", () => {
    const driver = after(new ExpressionDriver(seeded(1)), 20, happy);
    expect(driver.weights.moods["happy"]).toBeGreaterThan(0);
    expect(driver.weights.moods["happy"]).toBeLessThan(0.2);
    after(driver, 1500, happy);
    expect(driver.weights.moods["happy"]).toBeGreaterThan(0.95);
    after(driver, 1500);
    expect(driver.weights.moods["happy"]).toBe(0);
  });

  it("are the same at 8 frames a second as at 50", () => {
    const many = after(new ExpressionDriver(seeded(1)), 240, happy);
    const few = new ExpressionDriver(seeded(1));
    for (let i = 0; i < 2; i++) few.step(120, happy, CLOSED, false, true);
    expect(few.weights.moods["happy"]).toBeCloseTo(many.weights.moods["happy"] ?? 0, 6);
  });

  it("leave the lips room while she speaks, all of it where the model says that they block the mouth", () => {
    const sad = { emotion: "sad", intensity: 1 };
    for (const [override, left] of [["none", 0.7], ["blend", 0.4], ["block", 0]] as const) {
      const driver = new ExpressionDriver(seeded(1));
      driver.wear({ ...PRESETS, mouth: { sad: override } });
      after(driver, 2000, sad, OPEN, true);
      expect(driver.weights.moods["sad"], override).toBeCloseTo(left, 2);
      after(driver, 2000, sad);
      expect(driver.weights.moods["sad"], override).toBeCloseTo(1, 2);
    }
  });
});

describe("thirteen emotions", () => {
  const sum = (blend: Record<string, number>): number => Object.values(blend).reduce((a, b) => a + b, 0);

  it("show on a model with VRM's presets, on one of VRM 0.x without surprise, and on a richer one", () => {
    for (const names of [PRESETS.names, ["happy", "angry", "sad", "relaxed"], ["joy", "Sorrow"]]) {
      const palette = new Palette(names);
      for (const emotion of EMOTIONS) {
        const shown = palette.of({ emotion, intensity: 1 });
        for (const name of Object.keys(shown)) expect(names).toContain(name);
        if (emotion === "neutral") expect(shown).toEqual({});
        else expect(sum(shown), `${emotion} with ${names.join()}`).toBeGreaterThan(0);
      }
    }
    const own = new Palette([...PRESETS.names, "Shy", "love"]);
    expect(own.of({ emotion: "shy", intensity: 0.5 })).toEqual({ Shy: 0.5 });
    expect(own.of({ emotion: "loving", intensity: 1 })).toEqual({ love: 1 });
  });

  it("falls back from surprise to a hint of what there is", () => {
    expect(new Palette(["relaxed"]).of({ emotion: "surprised", intensity: 1 })).toEqual({ relaxed: 0.3 });
    expect(new Palette(["Surprised", "relaxed"]).of({ emotion: "surprised", intensity: 1 })).toEqual({ Surprised: 1 });
    expect(new Palette([]).of({ emotion: "happy", intensity: 1 })).toEqual({});
  });

  it("is neutral for a word that nobody knows, and bounded", () => {
    const palette = new Palette(PRESETS.names);
    expect(palette.of({ emotion: "unheard-of", intensity: 1 })).toEqual({});
    expect(palette.of({ emotion: "happy", intensity: 7 })).toEqual({ happy: 1 });
  });
});

describe("blinking", () => {
  /** Pauses before and lengths of the blinks of `minutes`, s. */
  function blinks(seed: number, minutes: number): { pause: number; length: number }[] {
    const blink = new Blink(seeded(seed));
    const step = 0.005;
    const seen: { pause: number; length: number }[] = [];
    let [open, closed] = [0, 0];
    for (let t = 0; t < minutes * 60; t += step) {
      if (blink.step(step) > 0) closed += step;
      else {
        if (closed > 0) {
          seen.push({ pause: open, length: closed });
          [open, closed] = [0, 0];
        }
        open += step;
      }
    }
    return seen.slice(1);
  }

  it("keeps its intervals and lengths within bounds, with a double now and then", () => {
    for (const seed of [1, 2, 3]) {
      const seen = blinks(seed, 30);
      const doubles = seen.filter(({ pause }) => pause < 1);
      const single = seen.filter(({ pause }) => pause >= 1);
      for (const { pause } of single) {
        expect(pause).toBeGreaterThan(INTERVAL_S[0] - 0.02);
        expect(pause).toBeLessThan(INTERVAL_S[1] + 0.02);
      }
      for (const { pause } of doubles) {
        expect(pause).toBeGreaterThan(DOUBLE_S[0] - 0.02);
        expect(pause).toBeLessThan(DOUBLE_S[1] + 0.02);
      }
      for (const { length } of seen) {
        expect(length).toBeGreaterThan(LENGTH_S[0] - 0.02);
        expect(length).toBeLessThan(LENGTH_S[1] + 0.02);
      }
      expect(doubles.length / single.length).toBeGreaterThan(DOUBLE_CHANCE * 0.4);
      expect(doubles.length / single.length).toBeLessThan(DOUBLE_CHANCE * 2);
      expect(seen.every((it, i) => i === 0 || it.pause >= 1 || (seen[i - 1]?.pause ?? 1) >= 1), "never three in a row").toBe(true);
    }
  });

  it("closes less where a mood narrows the eyes of a model that does not say so itself", () => {
    const most = (emotion: string, lids: boolean): number => {
      const driver = new ExpressionDriver(seeded(4));
      driver.wear({ ...PRESETS, lids });
      let most = 0;
      for (let t = 0; t < 20_000; t += 20) {
        const { blink } = driver.step(20, { emotion, intensity: 1 }, CLOSED, false, true);
        if (t > 1_500) most = Math.max(most, blink);
      }
      return most;
    };
    expect(most("neutral", false)).toBeGreaterThan(0.8);
    expect(most("happy", false)).toBeLessThan(0.1);
    expect(most("happy", true)).toBeGreaterThan(0.8);
  });
});

describe("a face at rest", () => {
  const strongestHint = (calm: boolean, speaking: boolean): number => {
    const driver = new ExpressionDriver(seeded(7));
    let most = 0;
    for (let t = 0; t < 60_000; t += 20) {
      const { hint } = driver.step(20, NEUTRAL, CLOSED, speaking, calm);
      most = Math.max(most, ...Object.values(hint));
    }
    return most;
  };

  it("has small expressions, none when calm or speaking", () => {
    expect(strongestHint(false, false)).toBeGreaterThan(0.05);
    expect(strongestHint(false, false)).toBeLessThanOrEqual(0.22);
    expect(strongestHint(true, false)).toBe(0);
    expect(strongestHint(false, true)).toBe(0);
  });
});
