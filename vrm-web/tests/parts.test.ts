import { describe, expect, it } from "vitest";
import { ServerClock } from "../src/clock";
import { pauseMs } from "../src/connection";
import { subtitleAt } from "../src/line";
import { Transcript } from "../src/transcript";

const NEUTRAL = { emotion: "neutral", intensity: 0 };

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
