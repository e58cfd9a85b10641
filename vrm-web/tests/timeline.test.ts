import { describe, expect, it } from "vitest";
import type { AliceEvent, Mouth } from "../src/protocol";
import { VOWELS } from "../src/protocol";
import { Timeline } from "../src/timeline";
import table from "./timeline.json";

/** What `src/face/face_tests.rs` wrote: events in the form of the wire, and what must be seen. */
interface Look {
  at_ms: number;
  state: string;
  queue: number;
  playing: { segment: { turn: number; index: number }; played_ms: number } | null;
  subtitle: { text: string; said: string };
  feeling: { emotion: string; intensity: number };
  mouth: Mouth & { at_ms: number };
}
type Step = { event: AliceEvent } | { look: Look };

describe("the page shows what the face room says", () => {
  for (const { name, steps } of table as unknown as { name: string; steps: Step[] }[]) {
    it(name, () => {
      const timeline = new Timeline();
      for (const step of steps) {
        if ("event" in step) {
          timeline.apply(step.event);
          continue;
        }
        const { look } = step;
        const scene = timeline.scene(look.at_ms);
        expect(scene.state).toBe(look.state);
        expect(scene.queue).toBe(look.queue);
        expect(scene.playing).toEqual(look.playing);
        expect(scene.subtitle).toEqual(look.subtitle);
        expect(scene.feeling.emotion).toBe(look.feeling.emotion);
        expect(scene.feeling.intensity).toBeCloseTo(look.feeling.intensity, 4);
        for (const vowel of VOWELS) expect(scene.mouth[vowel]).toBeCloseTo(look.mouth[vowel], 4);
      }
    });
  }
});

describe("a page that comes in the middle", () => {
  const segment = (index: number) => ({
    id: { turn: 3, index },
    display: "Hello there.",
    spoken: "Hello there.",
    feeling: { emotion: "happy", intensity: 0.8 },
    visemes: [
      { at_ms: 0, aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 },
      { at_ms: 100, aa: 1, ih: 0, ou: 0, ee: 0, oh: 0 },
      { at_ms: 900, aa: 1, ih: 0, ou: 0, ee: 0, oh: 0 },
      { at_ms: 1000, aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 },
    ],
    duration_ms: 1000,
    media: "m",
    words: [] as [number, number][],
  });
  const scene = {
    state: "speaking" as const,
    listen: "speaking" as const,
    mic: { state: "live" as const, device: null, reason: null },
    turn: { turn: 3, source: "voice" as const, user_text: "Hi", said: "" },
    segments: [segment(0), segment(1)],
    playing: { segment: { turn: 3, index: 0 }, played_ms: 400 },
    subtitle: { text: "Hello there.", said: "Hello" },
    feeling: { emotion: "happy", intensity: 0.8 },
  };

  it("goes on from the snapshot and follows the rest", () => {
    const timeline = new Timeline();
    timeline.restore(scene, 10_000);
    const seen = timeline.scene(10_050);
    expect(seen.state).toBe("speaking");
    expect(seen.playing?.played_ms).toBe(450);
    expect(seen.mouth.aa).toBe(1);
    expect(seen.feeling.emotion).toBe("happy");
    timeline.apply({ type: "segment_finished", at_ms: 10_600, segment: { turn: 3, index: 0 } });
    timeline.apply({ type: "segment_started", at_ms: 10_610, segment: { turn: 3, index: 1 } });
    expect(timeline.scene(10_700).playing?.segment.index).toBe(1);
    timeline.apply({ type: "speaking_ended", at_ms: 11_610, turn: 3 });
    expect(timeline.scene(11_611).state).not.toBe("speaking");
  });

  it("closes the mouth when the line is lost and takes the next turn after it", () => {
    const timeline = new Timeline();
    timeline.restore(scene, 10_000);
    timeline.lose(10_100);
    expect(timeline.scene(10_100).mouth.aa).toBe(0);
    expect(timeline.scene(10_100).queue).toBe(0);
    timeline.apply({ type: "segment_ready", at_ms: 20_000, ...segment(0) });
    timeline.apply({ type: "segment_started", at_ms: 20_000, segment: { turn: 3, index: 0 } });
    expect(timeline.scene(20_200).mouth.aa).toBe(1);
  });
});
