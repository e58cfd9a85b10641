/** Cuts the sound of a microphone into frames of 20 ms, s16le. Runs in the audio thread. */

export const FRAME_MS = 20;

export class Framer {
  readonly #frame: Float32Array;
  #filled = 0;

  /** `rate`: samples a second. */
  constructor(rate: number) {
    this.#frame = new Float32Array(Math.round((rate * FRAME_MS) / 1000));
  }

  /** Takes a block with one or more channels, which are mixed; returns the frames that are full. */
  push(channels: readonly Float32Array[]): ArrayBuffer[] {
    const first = channels[0];
    if (!first) return [];
    const full: ArrayBuffer[] = [];
    for (let i = 0; i < first.length; i++) {
      let sum = 0;
      for (const channel of channels) sum += channel[i] ?? 0;
      this.#frame[this.#filled++] = sum / channels.length;
      if (this.#filled === this.#frame.length) {
        full.push(s16le(this.#frame));
        this.#filled = 0;
      }
    }
    return full;
  }
}

function s16le(samples: Float32Array): ArrayBuffer {
  const bytes = new ArrayBuffer(samples.length * 2);
  const view = new DataView(bytes);
  // The `|| 0` is for NaN, which a broken driver may bring.
  samples.forEach((sample, i) => view.setInt16(2 * i, Math.round(Math.min(Math.max(sample || 0, -1), 1) * 32_767), true));
  return bytes;
}
