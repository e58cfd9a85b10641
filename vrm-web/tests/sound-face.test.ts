import { describe, expect, it } from "vitest";
import type { Segment } from "../src/protocol";
import { Timeline } from "../src/timeline";

const segment = (index: number): Segment => ({
  id: { turn: 1, index },
  display: `part ${index}`,
  spoken: `part ${index}`,
  feeling: { emotion: "neutral", intensity: 0 },
  visemes: [],
  duration_ms: 400,
  media: "m",
  words: [],
});

describe("a face that follows the page's own sound", () => {
  it("keeps what was said when the report of the server comes after the next part began", () => {
    const timeline = new Timeline();
    timeline.apply({ type: "turn_started", turn: 1, source: "page", user_text: "hi", draft: false, at_ms: 0 });
    for (const index of [0, 1, 2]) timeline.apply({ type: "segment_ready", ...segment(index), at_ms: 0 });
    const finish = (index: number, at_ms: number): void => {
      timeline.apply({ type: "segment_progress", segment: { turn: 1, index }, played_ms: Infinity, at_ms });
      timeline.apply({ type: "segment_finished", segment: { turn: 1, index }, at_ms });
    };
    timeline.apply({ type: "segment_progress", segment: { turn: 1, index: 0 }, played_ms: 390, at_ms: 390 });
    finish(0, 400);
    timeline.apply({ type: "segment_progress", segment: { turn: 1, index: 1 }, played_ms: 5, at_ms: 405 });
    // Late news from the server of what is over here.
    timeline.apply({ type: "segment_finished", segment: { turn: 1, index: 0 }, at_ms: 440 });
    timeline.apply({ type: "segment_progress", segment: { turn: 1, index: 0 }, played_ms: 400, at_ms: 440 });
    const scene = timeline.scene(445);
    expect(scene.playing).toEqual({ segment: { turn: 1, index: 1 }, played_ms: 45 });
    expect(scene.turn?.said).toBe("part 0");
    finish(1, 800);
    // One that began and ended between two looks.
    finish(2, 801);
    expect(timeline.scene(802)).toMatchObject({ playing: null, turn: { said: "part 0 part 1 part 2" } });
  });
});
