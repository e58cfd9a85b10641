/** The page's own sound as the rest of the page sees it. */
import { sameSegment, type AliceEvent, type MicStatus, type SegmentId } from "../protocol";
import { Call } from "./call";
import type { Trouble } from "./line";
import { SoundPanel } from "./panel";

export interface SoundHost {
  say(trouble: Trouble): void;
  /** What this page plays is so far: its own clock moves the lips, not the report that comes back. */
  moved(segment: SegmentId, playedMs: number): void;
  finished(segment: SegmentId): void;
}

export class Sound {
  readonly call: Call;
  readonly panel: SoundPanel;
  #local = false;

  constructor(host: SoundHost) {
    this.call = new Call({
      changed: (status) => this.panel.status(status),
      devices: (found) => this.panel.devices(found),
      trouble: (trouble) => host.say(trouble),
      moved: (segment, playedMs) => host.moved(segment, playedMs),
      finished: (segment) => host.finished(segment),
    });
    this.panel = new SoundPanel(this.call.preferences, {
      toggle: () => void this.call.toggle(),
      unblock: () => this.call.unblock(),
      prefer: (change) => void this.call.prefer(change),
    });
    document.addEventListener("keydown", (event) => {
      // Where there is a microphone at Alice's side, a key must not take it away from who sits there.
      if (event.key !== "F2" || event.repeat || (this.#local && this.call.status.state === "off")) return;
      event.preventDefault();
      void this.call.toggle();
    });
  }

  /** The microphone that Alice uses now, here or at her side. */
  mic({ state }: MicStatus): void {
    this.#local = state === "live" || state === "muted";
    this.call.mute(state === "muted");
  }

  /** Whether an event tells of the sound what this page knows better, because it plays it. */
  knowsBetter(event: AliceEvent): boolean {
    if (event.type !== "segment_started" && event.type !== "segment_progress") return false;
    const position = this.call.position;
    return position !== null && sameSegment(position.segment, event.segment);
  }
}
