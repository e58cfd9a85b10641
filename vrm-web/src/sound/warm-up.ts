/**
 * An echo canceller that was just started does not know the room yet: of the first words that sound, much
 * comes through, and Alice would be interrupted by herself. So for the first second of her voice after the
 * microphone was opened, silence is sent instead (measured: Chromium's needs some tenths of a second; with
 * its microphone wired to its loudspeaker her first words came back at -22 dB, later ones at -120 dB).
 */
import { FRAME_MS } from "./framer";

export const WARM_UP_MS = 1_000;

export class WarmUp {
  #learned = 0;

  /** The frame, or silence in its place while her voice `sounds` and the canceller still learns. */
  pass(frame: ArrayBuffer, sounds: boolean): ArrayBuffer {
    if (!sounds || this.#learned >= WARM_UP_MS) return frame;
    this.#learned += FRAME_MS;
    return new ArrayBuffer(frame.byteLength);
  }
}
