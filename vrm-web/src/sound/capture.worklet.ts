/** The microphone's end in the audio thread: frames go to the page as they fill. A file of its own. */
import { Framer } from "./framer";

// The scope of worklets is not in TypeScript's library.
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

class Capture extends AudioWorkletProcessor {
  readonly #framer = new Framer(sampleRate);

  process([channels]: Float32Array[][]): boolean {
    for (const frame of this.#framer.push(channels ?? [])) this.port.postMessage(frame, [frame]);
    return true;
  }
}

registerProcessor("capture", Capture);
