import { describe, expect, it } from "vitest";
import type { Ack } from "../src/sound/messages";
import { KEPT_S, Player, type Deck } from "../src/sound/player";
import { LEAD_S, Schedule } from "../src/sound/schedule";

const RATE = 1_000;
const LEAD = LEAD_S * RATE;

/** Time passes when the test says so; what was played lies where it was asked for. */
class Tape implements Deck {
  readonly rate = RATE;
  running = true;
  frame = 0;
  late = 0;
  cuts = 0;
  gains: [number, number][] = [];
  parts: { at: number; samples: number[] }[] = [];

  now(): number {
    return this.frame;
  }
  latency(): number {
    return this.late;
  }
  play(samples: Float32Array, at: number): void {
    this.parts.push({ at, samples: [...samples] });
  }
  cut(): void {
    this.cuts++;
  }
  loudness(gain: number, ms: number): void {
    this.gains.push([Number(gain.toFixed(4)), ms]);
  }

  /** How often sound lies over sound, or a hole between two parts. */
  get seams(): number {
    const sorted = [...this.parts].sort((a, b) => a.at - b.at);
    return sorted.slice(1).filter(({ at }, i) => at !== sorted[i]!.at + sorted[i]!.samples.length).length;
  }
}

function sound(frames: number, value = 16_384): ArrayBuffer {
  const bytes = new ArrayBuffer(frames * 2);
  const view = new DataView(bytes);
  for (let i = 0; i < frames; i++) view.setInt16(2 * i, value, true);
  return bytes;
}

function rig(): { tape: Tape; player: Player; said: () => Ack[]; segment: (index: number, frames: number, chunk?: number) => void } {
  const tape = new Tape();
  const player = new Player(tape);
  return {
    tape,
    player,
    said: () => player.tick(tape.frame),
    segment(index, frames, chunk = 40) {
      player.mark({ type: "start", turn: 3, index, duration_ms: frames });
      for (let left = frames; left > 0; left -= chunk) player.sound(sound(Math.min(chunk, left)));
      player.mark({ type: "end", turn: 3, index });
    },
  };
}

const played = (index: number, ms: number): Ack => ({ type: "played", turn: 3, index, ms });
const finished = (index: number): Ack => ({ type: "finished", turn: 3, index });

describe("the player", () => {
  it("joins parts and segments without a gap, however they are cut", () => {
    const { tape, segment } = rig();
    segment(0, 250, 40);
    segment(1, 333, 17);
    segment(2, 1, 40);
    expect(tape.seams).toBe(0);
    expect(tape.parts[0]!.at).toBe(LEAD);
    expect(tape.parts.reduce((sum, { samples }) => sum + samples.length, 0)).toBe(584);
    expect(tape.parts[0]!.samples[0]).toBe(0.5);
  });

  it("tells what was heard about every 100 ms, and the end once", () => {
    const { tape, player, said, segment } = rig();
    segment(0, 250);
    segment(1, 100);
    const told: [number, Ack][] = [];
    for (; tape.frame < 500; tape.frame++) told.push(...said().map((ack): [number, Ack] => [tape.frame, ack]));
    expect(told).toEqual([
      [LEAD + 1, played(0, 1)],
      [LEAD + 101, played(0, 101)],
      [LEAD + 201, played(0, 201)],
      [LEAD + 250, finished(0)],
      [LEAD + 251, played(1, 1)],
      [LEAD + 350, finished(1)],
    ]);
    expect(player.wait).toBeNull();
  });

  it("looks again when there is something to tell, not before", () => {
    const { tape, player, said, segment } = rig();
    expect(player.wait).toBeNull();
    segment(0, 250);
    expect(player.wait).toBe(LEAD + 1);
    tape.frame = LEAD + 1;
    said();
    expect(player.wait).toBe(100);
    tape.frame += 110;
    said();
    tape.frame += 100;
    said();
    expect(player.wait).toBe(39);
    tape.frame += 38;
    said();
    // The clock of a context goes in steps.
    expect(player.wait).toBe(5);
  });

  it("takes off what the device and the loudspeaker need", () => {
    const { tape, player, said, segment } = rig();
    tape.late = 60;
    segment(0, 250);
    tape.frame = LEAD + 50;
    expect(said()).toEqual([]);
    expect(player.position).toBeNull();
    tape.frame = LEAD + 160;
    expect(said()).toEqual([played(0, 100)]);
    expect(player.position).toEqual({ segment: { turn: 3, index: 0 }, played_ms: 100 });
    tape.frame = LEAD + 309;
    expect(said().map((ack) => ack.type)).not.toContain("finished");
    tape.frame = LEAD + 310;
    expect(said()).toEqual([finished(0)]);
  });

  it("counts no pause as sound when more comes too late", () => {
    const { tape, player, said } = rig();
    player.mark({ type: "start", turn: 3, index: 0, duration_ms: 200 });
    player.sound(sound(100));
    tape.frame = LEAD + 400;
    expect(said()).toEqual([played(0, 100)]);
    player.sound(sound(100));
    expect(tape.parts[1]!.at).toBe(tape.frame + LEAD);
    tape.frame += LEAD + 50;
    expect(player.position?.played_ms).toBe(150);
    player.mark({ type: "end", turn: 3, index: 0 });
    tape.frame += 50;
    expect(said()).toEqual([finished(0)]);
  });

  it("is silent at once on a flush, and tells nothing of what was dropped", () => {
    const { tape, player, said, segment } = rig();
    segment(0, 5_000);
    tape.frame = 500;
    said();
    player.mark({ type: "flush" });
    expect(tape.cuts).toBe(1);
    tape.parts = [];
    tape.frame = 520;
    expect(said()).toEqual([]);
    expect(player.wait).toBeNull();
    // What was under way when it was flushed belongs to no segment any more.
    player.sound(sound(40));
    expect(tape.parts).toEqual([]);
    segment(1, 100);
    expect(tape.parts[0]!.at).toBe(520 + LEAD);
  });

  it("lowers its voice by 18 dB fast, brings it back slower, and minds the volume", () => {
    const { tape, player } = rig();
    player.mark({ type: "duck", on: true });
    player.mark({ type: "volume", volume: 0.5 });
    player.mark({ type: "duck", on: false });
    player.mark({ type: "duck", on: false });
    player.mark({ type: "volume", volume: 7 });
    expect(tape.gains).toEqual([[0.1259, 10], [0.0629, 10], [0.5, 100], [1, 100]]);
  });

  it("hands over three seconds ahead and keeps the rest in order", () => {
    const { tape, said, segment } = rig();
    segment(0, 10_000);
    segment(1, 500);
    const handed = (): number => tape.parts.reduce((sum, { samples }) => sum + samples.length, 0);
    expect(handed()).toBeLessThan(3_100);
    for (; tape.frame < 11_000; tape.frame += 1_000) said();
    expect(handed()).toBe(10_500);
    expect(tape.seams).toBe(0);
  });

  it("drops what no reply is long enough for, and never tells it as played", () => {
    const { tape, player, said, segment } = rig();
    tape.running = false;
    segment(0, (KEPT_S + 20) * RATE, 1_000);
    tape.running = true;
    for (; tape.frame < (KEPT_S + 30) * RATE; tape.frame += 1_000) said();
    const handed = tape.parts.reduce((sum, { samples }) => sum + samples.length, 0);
    expect(handed).toBeLessThanOrEqual((KEPT_S + 5) * RATE);
    expect(player.wait).toBeNull();
  });
});

describe("sound that may not be played", () => {
  it("is kept, told as waiting and not as played, and played after a tap", () => {
    const { tape, player, said, segment } = rig();
    tape.running = false;
    expect(player.blocked).toBe(false);
    segment(0, 250);
    expect(player.blocked).toBe(true);
    const waits: Ack = { type: "waiting", turn: 3, index: 0 };
    const told: [number, Ack][] = [];
    // Time goes by, the context's clock stands.
    for (let at = 0; at < 2_500; at += 50) told.push(...player.tick(at).map((ack): [number, Ack] => [at, ack]));
    expect(told).toEqual([[0, waits], [1_000, waits], [2_000, waits]]);
    expect(player.position).toBeNull();
    tape.running = true;
    expect(player.blocked).toBe(false);
    tape.frame = LEAD + 250;
    expect(said()).toEqual([finished(0)]);
    expect(tape.cuts).toBe(0);
  });

  it("is given up after a while, and a new wait is counted anew", () => {
    const { tape, player, segment } = rig();
    tape.running = false;
    segment(0, 250);
    let told = 0;
    for (let at = 0; at < 120_000; at += 100) told += player.tick(at).length;
    expect(told).toBe(56);
    player.mark({ type: "flush" });
    expect(player.tick(130_000)).toEqual([]);
    segment(1, 250);
    expect(player.tick(130_100)).toEqual([{ type: "waiting", turn: 3, index: 1 }]);
  });

  it("goes on where it was when a running context is called away", () => {
    const { tape, player, said, segment } = rig();
    segment(0, 250);
    tape.frame = LEAD + 120;
    said();
    tape.running = false;
    expect(player.tick(0)).toEqual([{ type: "waiting", turn: 3, index: 0 }]);
    tape.running = true;
    tape.frame = LEAD + 230;
    expect(said()).toEqual([played(0, 230)]);
  });
});

describe("the schedule", () => {
  it("ends a segment without sound when its turn comes", () => {
    const schedule = new Schedule(RATE);
    schedule.begin({ turn: 1, index: 0 });
    schedule.add(100, 0);
    schedule.end({ turn: 1, index: 0 });
    schedule.begin({ turn: 1, index: 1 });
    schedule.end({ turn: 1, index: 1 });
    expect(schedule.report(LEAD + 50).map(({ done }) => done)).toEqual([false]);
    expect(schedule.report(LEAD + 100).map(({ segment, done }) => [segment.index, done])).toEqual([[0, true], [1, true]]);
  });

  it("does not end a segment whose sound may still come", () => {
    const schedule = new Schedule(RATE);
    schedule.begin({ turn: 1, index: 0 });
    schedule.add(100, 0);
    expect(schedule.report(5_000)).toEqual([{ segment: { turn: 1, index: 0 }, played_ms: 100, done: false }]);
    expect(schedule.report(6_000)).toEqual([]);
    expect(schedule.add(0, 6_000)).toBeNull();
  });
});
