/**
 * The WebSocket to `/audio`: hello, back-off, and what its end means. Sockets, time and chance come from
 * outside.
 */
import { pauseMs } from "../connection";
import { readMark, type Ack, type Hello, type Mark } from "./messages";

/** The part of a `WebSocket` that is used. */
export interface Socket {
  binaryType: BinaryType;
  readonly bufferedAmount: number;
  readonly readyState: number;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(data: string | ArrayBuffer): void;
  close(code?: number, reason?: string): void;
}

/** One line for the person and what to do. */
export interface Trouble {
  text: string;
  hint: string;
}

export type LineState =
  | { kind: "off" }
  /** Is being opened, or will be again. */
  | { kind: "connecting" }
  | { kind: "open" }
  /** Another device took over; nothing is tried again by itself. */
  | { kind: "taken" }
  | ({ kind: "refused" } & Trouble);

export interface LineParts {
  open(): Socket;
  /** Why a line that never opened was refused, as far as the server tells; `null`: try again. */
  ask(): Promise<Refusal | null>;
  random(): number;
}

export interface LineListener {
  state(state: LineState): void;
  mark(mark: Mark): void;
  sound(bytes: ArrayBuffer): void;
}

/** `WebSocket.OPEN`: a socket that is closing takes nothing any more, before it says that it is closed. */
const OPEN = 1;
/** What waits to go up is the sound of so many bytes at most (two seconds at 48 kHz): later than that it is of no use. */
const LATE_BYTES = 192_000;

/** What is not sure is believed after so many tries. */
const UNSURE_TRIES = 2;

/** What the end of a line means. `ready`: Alice had let it in. */
export function meaning(code: number, reason: string, ready: boolean): "again" | "taken" | Trouble {
  if (code === 1001 && reason === "another device took over") return "taken";
  const refused = (code === 1008 && !ready && !reason.startsWith("no hello")) || [1003, 1007, 1009].includes(code);
  if (!refused) return "again";
  return {
    text: `Alice did not take this browser's sound: ${reason || `code ${code}`}.`,
    hint: "Reload the page and try again; if it is of another version than Alice, restart her as well.",
  };
}

/** Why a line did not open. Not `sure`: she may have been started between the two questions. */
export type Refusal = Trouble & { sure: boolean };

/** What the answer to a plain `GET /audio` says about a line that does not open. */
export function refusal(status: number, body: unknown): Refusal | null {
  const error = (body as { error?: { message?: unknown; hint?: unknown } } | null)?.error;
  if (status === 401 || status === 403) {
    const text = typeof error?.message === "string" ? error.message : `the server answered ${status}`;
    const hint = typeof error?.hint === "string" ? error.hint : "Open the page with the token again.";
    return { text: `The line for sound was refused: ${text}.`, hint, sure: true };
  }
  if (status === 426) {
    return {
      text: "The line for sound does not open: something between here and Alice does not pass WebSockets on.",
      hint: "Let the reverse proxy upgrade connections to /audio (docs/remote-audio.md has examples).",
      sure: false,
    };
  }
  return null;
}

export class Line {
  #socket: Socket | null = null;
  /** The line before, while a new one is being opened in its place. */
  #before: Socket | null = null;
  #hello: Hello | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;
  #ready = false;
  #state: LineState = { kind: "off" };

  constructor(
    private readonly parts: LineParts,
    private readonly listener: LineListener,
  ) {}

  get state(): LineState {
    return this.#state;
  }

  /** Opens the line, or a new one in place of the one that there is. */
  open(hello: Hello): void {
    // Alice lets go of the old one when the new one takes over; without one she would use her own devices.
    const before = this.#ready ? this.#socket : null;
    if (before) this.#socket = null;
    this.#drop();
    this.#before = before;
    this.#hello = hello;
    this.#attempt = 0;
    this.#connect();
  }

  close(): void {
    this.#drop();
    this.#hello = null;
    this.#become({ kind: "off" });
  }

  /** Tells Alice what was played. */
  tell(ack: Ack): void {
    if (this.#ready && this.#socket?.readyState === OPEN) this.#socket.send(JSON.stringify(ack));
  }

  /** Sends a frame of the microphone; `false` when it was dropped. */
  hear(frame: ArrayBuffer): boolean {
    if (!this.#ready || !this.#socket || !this.#hello?.input_rate) return false;
    if (this.#socket.readyState !== OPEN || this.#socket.bufferedAmount > LATE_BYTES) return false;
    this.#socket.send(frame);
    return true;
  }

  #connect(): void {
    const hello = this.#hello;
    if (!hello) return;
    this.#become({ kind: "connecting" });
    const socket = this.parts.open();
    this.#socket = socket;
    this.#ready = false;
    let opened = false;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
      socket.send(JSON.stringify(hello));
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      if (data instanceof ArrayBuffer) this.listener.sound(data);
      else this.#read(String(data));
    };
    socket.onclose = ({ code, reason }) => {
      if (socket === this.#socket) void this.#ended(code, reason, opened);
    };
  }

  #read(text: string): void {
    const mark = readMark(text);
    if (!mark) return;
    if (mark.type === "ready") {
      this.#ready = true;
      this.#dropBefore();
      this.#attempt = 0;
      this.#become({ kind: "open" });
    } else this.listener.mark(mark);
  }

  async #ended(code: number, reason: string, opened: boolean): Promise<void> {
    const socket = this.#socket;
    const what = meaning(code, reason, this.#ready);
    this.#ready = false;
    this.#dropBefore();
    if (what === "taken") return this.#give({ kind: "taken" });
    if (what !== "again") return this.#give({ kind: "refused", ...what });
    this.#become({ kind: "connecting" });
    // A browser does not say why a line did not open.
    const trouble = opened ? null : await this.parts.ask();
    if (socket !== this.#socket) return;
    if (trouble && (trouble.sure || this.#attempt >= UNSURE_TRIES)) return this.#give({ kind: "refused", text: trouble.text, hint: trouble.hint });
    this.#socket = null;
    this.#attempt++;
    this.#timer = setTimeout(() => this.#connect(), pauseMs(this.#attempt, this.parts.random()));
  }

  /** Nothing is tried again. */
  #give(state: LineState): void {
    this.#socket = null;
    this.#hello = null;
    this.#become(state);
  }

  #drop(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    this.#ready = false;
    socket?.close(1000);
    this.#dropBefore();
  }

  #dropBefore(): void {
    this.#before?.close(1000);
    this.#before = null;
  }

  #become(state: LineState): void {
    if (state.kind === this.#state.kind && state.kind !== "refused") return;
    this.#state = state;
    this.listener.state(state);
  }
}
