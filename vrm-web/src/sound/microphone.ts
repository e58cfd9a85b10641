/** The browser's microphone: may it be used, why not, and its frames. */
import workletUrl from "./capture.worklet?worker&url";
import type { Trouble } from "./line";

/** What stands in the way before the browser is even asked; `null`: nothing. */
export function standsInTheWay(secure: boolean, canAsk: boolean, host: string): Trouble | null {
  if (!secure) {
    return {
      text: `This browser gives a page its microphone over HTTPS or on the same machine only, and ${host} is neither, so only the loudspeaker is used.`,
      hint: "Put a reverse proxy with HTTPS before Alice (docs/remote-audio.md), or open the page on her machine as localhost.",
    };
  }
  if (canAsk) return null;
  return { text: "This browser has no microphone for pages, so only the loudspeaker is used.", hint: "Use a current Firefox, Chromium or Safari." };
}

/** What a refusal of `getUserMedia` means, by the name of the error. */
export function whyNoMicrophone(name: string): Trouble {
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      return {
        text: "The browser does not let this page use the microphone, so only the loudspeaker is used.",
        hint: "Allow it at the sign beside the address (and in the system's privacy settings), then start again.",
      };
    case "NotFoundError":
      return { text: "There is no microphone, so only the loudspeaker is used.", hint: "Plug one in; it is taken when it appears." };
    case "NotReadableError":
    case "AbortError":
      return { text: "The microphone can't be opened, so only the loudspeaker is used.", hint: "Another program may hold it: close that, then start again." };
    default:
      return { text: `The microphone can't be used (${name}), so only the loudspeaker is used.`, hint: "Choose another one in the settings." };
  }
}

/**
 * Echo cancelling is what makes talking over her possible. Noise suppression takes fans and keys away
 * before they look like speech. No automatic gain: the ears learn the noise of the room and find the end
 * of speech by it, and gain would raise that noise, and what is left of the echo, in each pause.
 */
export function constraints(input: string): MediaStreamConstraints {
  return {
    audio: {
      echoCancellation: true,
      noiseSuppression: true,
      autoGainControl: false,
      channelCount: 1,
      ...(input === "" ? {} : { deviceId: { exact: input } }),
    },
  };
}

export class Microphone {
  private constructor(
    readonly label: string,
    readonly echoCancelled: boolean,
    private readonly track: MediaStreamTrack,
    private readonly nodes: readonly AudioNode[],
  ) {}

  /**
   * Asks for the microphone and hands its frames over.
   * @throws {DOMException} `whyNoMicrophone` says what its name means.
   */
  static async open(context: AudioContext, input: string, heard: (frame: ArrayBuffer) => void, gone: () => void): Promise<Microphone> {
    const stream = await ask(input);
    const track = stream.getAudioTracks()[0];
    if (!track) throw new DOMException("no track", "NotFoundError");
    try {
      await context.audioWorklet.addModule(workletUrl);
      const source = context.createMediaStreamSource(stream);
      const capture = new AudioWorkletNode(context, "capture", { numberOfInputs: 1, numberOfOutputs: 0 });
      capture.port.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => heard(data);
      source.connect(capture);
      track.onended = gone;
      return new Microphone(track.label, track.getSettings().echoCancellation === true, track, [source, capture]);
    } catch (error) {
      track.stop();
      throw error;
    }
  }

  /** What is muted sends silence, and the browser shows it. */
  mute(muted: boolean): void {
    this.track.enabled = !muted;
  }

  close(): void {
    this.track.onended = null;
    this.track.stop();
    for (const node of this.nodes) node.disconnect();
  }
}

/** The chosen microphone, or whichever there is when that one is gone. */
async function ask(input: string): Promise<MediaStream> {
  const { mediaDevices } = navigator;
  try {
    return await mediaDevices.getUserMedia(constraints(input));
  } catch (error) {
    const gone = error instanceof DOMException && (error.name === "OverconstrainedError" || error.name === "NotFoundError");
    if (input === "" || !gone) throw error;
    return mediaDevices.getUserMedia(constraints(""));
  }
}
