/**
 * Which sound lies where on the clock of the speaker, and what of it was heard. Counted in frames
 * (samples of one channel), so that parts join without a gap or an overlap. Knows no browser.
 */
import { sameSegment, type SegmentId } from "../protocol";

/** Sound that comes after a pause begins so much later, s: what is asked for at once comes too late. */
export const LEAD_S = 0.03;
/** Sound that would begin sooner than this is taken to come too late, s. */
const MARGIN_S = 0.008;
/** Distance of reports, ms. */
export const REPORT_MS = 100;
/** A context's clock goes in steps of about this length, so looking more often tells nothing new, ms. */
const SHORTEST_MS = 5;

export type Report = { segment: SegmentId; played_ms: number; done: boolean };

interface Queued {
  segment: SegmentId;
  parts: { at: number; frames: number }[];
  /** All of its sound is here. */
  whole: boolean;
  /** What was reported of it, ms; `null`: nothing. */
  reported: number | null;
}

export class Schedule {
  #queue: Queued[] = [];
  /** Where the next part begins. */
  #next = 0;

  /** `rate`: frames a second. */
  constructor(readonly rate: number) {}

  /** The segment that is heard or comes next. */
  get first(): SegmentId | null {
    return this.#queue[0]?.segment ?? null;
  }

  /** Up to which frame there is sound. */
  get until(): number {
    return this.#next;
  }

  begin(segment: SegmentId): void {
    this.#queue.push({ segment, parts: [], whole: false, reported: null });
  }

  /** Takes the next `frames` of the newest segment at a time; says where they begin, `null`: nowhere. */
  add(frames: number, now: number): number | null {
    const newest = this.#queue.at(-1);
    if (!newest || newest.whole || frames <= 0) return null;
    if (this.#next < now + MARGIN_S * this.rate) this.#next = Math.ceil(now + LEAD_S * this.rate);
    const at = this.#next;
    const last = newest.parts.at(-1);
    if (last && last.at + last.frames === at) last.frames += frames;
    else newest.parts.push({ at, frames });
    this.#next += frames;
    return at;
  }

  end(segment: SegmentId): void {
    const queued = this.#queue.find((it) => sameSegment(it.segment, segment));
    if (queued) queued.whole = true;
  }

  flush(): void {
    this.#queue = [];
    this.#next = 0;
  }

  /** What sounds at a frame, and how far it is. */
  at(heard: number): { segment: SegmentId; played_ms: number } | null {
    const queued = this.#queue.find((it) => !this.#isOver(it, heard));
    const begin = queued?.parts[0];
    if (!queued || !begin || heard < begin.at) return null;
    return { segment: queued.segment, played_ms: this.#ms(played(queued, heard)) };
  }

  /** What is to be told when everything before the frame `heard` has been heard. */
  report(heard: number): Report[] {
    const reports: Report[] = [];
    for (;;) {
      const queued = this.#queue[0];
      if (!queued) return reports;
      const { segment } = queued;
      const played_ms = this.#ms(played(queued, heard));
      if (this.#isOver(queued, heard)) {
        this.#queue.shift();
        reports.push({ segment, played_ms, done: true });
        continue;
      }
      const due = queued.reported === null ? played_ms > 0 : played_ms >= queued.reported + REPORT_MS;
      if (due) {
        queued.reported = played_ms;
        reports.push({ segment, played_ms, done: false });
      }
      return reports;
    }
  }

  /** In how many ms there is something to tell; `null` while nothing is queued. */
  wait(heard: number): number | null {
    const queued = this.#queue[0];
    if (!queued) return null;
    const begin = queued.parts[0];
    const end = queued.parts.at(-1);
    if (!begin || !end) return REPORT_MS;
    const untilEnd = this.#ms(end.at + end.frames - heard);
    const untilReport = queued.reported === null ? this.#ms(begin.at + 1 - heard) : queued.reported + REPORT_MS - this.#ms(played(queued, heard));
    return Math.min(Math.max(Math.min(untilEnd, untilReport), SHORTEST_MS), REPORT_MS);
  }

  #isOver(queued: Queued, heard: number): boolean {
    const end = queued.parts.at(-1);
    return queued.whole && (!end || heard >= end.at + end.frames);
  }

  #ms(frames: number): number {
    return (frames / this.rate) * 1000;
  }
}

function played(queued: Queued, heard: number): number {
  return queued.parts.reduce((sum, { at, frames }) => sum + Math.min(Math.max(heard - at, 0), frames), 0);
}
