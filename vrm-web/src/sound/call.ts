/** The page as microphone and loudspeaker: puts the parts together. Knows the browser, not the document. */
import type { SegmentId } from "../protocol";
import { ContextDeck } from "./deck";
import { choices, has, type Choices } from "./devices";
import { Line, refusal, type LineState, type Refusal, type Trouble } from "./line";
import type { Hello } from "./messages";
import { Microphone, standsInTheWay, whyNoMicrophone } from "./microphone";
import { Player } from "./player";
import { SOUND_KEY, soundPreferences, type SoundPreferences } from "./preferences";
import { WarmUp } from "./warm-up";

export interface CallStatus {
  /** `on`: this browser is Alice's loudspeaker, and her microphone if `microphone` names one. */
  state: "off" | "starting" | "on" | "reconnecting";
  microphone: string | null;
  /** The browser makes and hears no sound before somebody taps. */
  blocked: boolean;
}

export interface CallListener {
  changed(status: CallStatus): void;
  trouble(trouble: Trouble): void;
  devices(choices: Choices): void;
  /** What this page plays is so far. */
  moved(segment: SegmentId, playedMs: number): void;
  /** It was played to its end. */
  finished(segment: SegmentId): void;
}

/** Rates that Alice takes, Hz. */
const RATES = { min: 8_000, max: 48_000 } as const;
/** In this tab a call goes on after a reload; another tab does not take it over by being opened. */
const KEPT_CALL = "alice.call";

const ECHO: Trouble = {
  text: "This browser does not take Alice's voice out of what its microphone hears, so she may interrupt herself.",
  hint: "Use headphones, or set `ears.mode` to `half-duplex`.",
};

/** What a call holds while it lasts. */
interface Sound {
  context: AudioContext;
  deck: ContextDeck;
  player: Player;
}

export class Call {
  readonly preferences: SoundPreferences;
  readonly #line: Line;
  #sound: Sound | null = null;
  #microphone: Microphone | null = null;
  /** There was no microphone; one that appears is taken. */
  #wantsMicrophone = false;
  #muted = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #starting = false;
  /** Counts starts and stops: what belongs to an earlier one is dropped. */
  #epoch = 0;

  constructor(private readonly listener: CallListener) {
    this.preferences = soundPreferences(localStorage.getItem(SOUND_KEY));
    this.#line = new Line(
      { open: () => new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/audio`), ask: whyNot, random: Math.random },
      {
        state: (state) => this.#lineIs(state),
        mark: (mark) => {
          this.#sound?.player.mark(mark);
          this.#beat();
        },
        sound: (bytes) => {
          this.#sound?.player.sound(bytes);
          this.#beat();
        },
      },
    );
    navigator.mediaDevices?.addEventListener?.("devicechange", () => void this.#devicesChanged());
    // Any tap or key will do, not only the button that asks for one.
    for (const gesture of ["pointerup", "keydown"] as const) document.addEventListener(gesture, () => this.unblock(), { capture: true });
  }

  get status(): CallStatus {
    return {
      state: this.#state,
      microphone: this.#microphone?.label ?? null,
      blocked: this.#sound !== null && this.#line.state.kind === "open" && !this.#sound.deck.running,
    };
  }

  /** What is heard from this page now. */
  get position(): { segment: SegmentId; played_ms: number } | null {
    return this.#sound?.player.position ?? null;
  }

  /** Whether this page is the loudspeaker, so that its own clock tells where the sound is. */
  get plays(): boolean {
    return this.#sound !== null && this.#line.state.kind === "open";
  }

  /** Goes on with the call that this tab had before it was reloaded. */
  resume(): void {
    if (sessionStorage.getItem(KEPT_CALL) !== null) void this.start();
  }

  async toggle(): Promise<void> {
    if (this.#state === "off") await this.start();
    else this.stop();
  }

  async start(): Promise<void> {
    if (this.#sound) return;
    const epoch = ++this.#epoch;
    const context = openContext();
    const deck = new ContextDeck(context, () => this.preferences.offset_ms);
    this.#sound = { context, deck, player: new Player(deck) };
    this.#starting = true;
    sessionStorage.setItem(KEPT_CALL, "1");
    context.onstatechange = () => {
      this.#beat();
      this.#changed();
    };
    this.unblock();
    this.#changed();
    await this.#takeOutput();
    await this.#takeMicrophone(epoch);
    if (epoch !== this.#epoch) return;
    this.#starting = false;
    this.#line.open(this.#hello(context));
    await this.#tellDevices();
  }

  stop(): void {
    this.#epoch++;
    this.#starting = false;
    this.#wantsMicrophone = false;
    sessionStorage.removeItem(KEPT_CALL);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#microphone?.close();
    this.#microphone = null;
    const sound = this.#sound;
    this.#sound = null;
    this.#line.close();
    if (sound) {
      sound.context.onstatechange = null;
      sound.player.flush();
      // After the fade.
      setTimeout(() => void sound.context.close(), 50);
    }
    this.#changed();
  }

  /** A tap: sound that was kept is played. Harmless at any other time. */
  unblock(): void {
    const sound = this.#sound;
    // Without a tap the promise waits for one; it fails when the call is over by then.
    if (sound && !sound.deck.running) sound.context.resume().catch(() => undefined);
  }

  /** Alice does not listen: the browser sends silence. */
  mute(muted: boolean): void {
    this.#muted = muted;
    this.#microphone?.mute(muted);
  }

  /** Changes what this browser remembers, and uses it. */
  async prefer(change: Partial<SoundPreferences>): Promise<void> {
    Object.assign(this.preferences, change);
    localStorage.setItem(SOUND_KEY, JSON.stringify(this.preferences));
    if (!this.#sound) return;
    if (change.output !== undefined) await this.#takeOutput();
    if (change.input !== undefined) await this.#renewMicrophone();
  }

  /** Asks the browser what there is; without the permission it tells no names. */
  async #tellDevices(): Promise<Choices> {
    const found = choices((await navigator.mediaDevices?.enumerateDevices?.().catch(() => [])) ?? []);
    // Where a page can't choose the loudspeaker there is nothing to show.
    if (!("setSinkId" in AudioContext.prototype)) found.outputs = [];
    this.listener.devices(found);
    return found;
  }

  async #devicesChanged(): Promise<void> {
    const found = await this.#tellDevices();
    if (!this.#sound) return;
    if (this.#wantsMicrophone && !this.#microphone && found.inputs.length > 1) await this.#renewMicrophone();
    // A chosen one that is gone gives way to the browser's own choice, and is taken again when it is back.
    await this.#takeOutput(has(found.outputs, this.preferences.output) ? this.preferences.output : "");
  }

  async #takeOutput(output = this.preferences.output): Promise<void> {
    const context = this.#sound?.context as (AudioContext & { sinkId?: string; setSinkId?(id: string): Promise<void> }) | undefined;
    if (!context?.setSinkId || (context.sinkId ?? "") === output) return;
    try {
      await context.setSinkId(output);
    } catch {
      if (output !== "") this.listener.trouble({ text: "The chosen loudspeaker can't be used, so the browser's own choice is.", hint: "Choose another one in the settings." });
    }
  }

  async #takeMicrophone(epoch: number): Promise<void> {
    const sound = this.#sound;
    if (!sound) return;
    this.#wantsMicrophone = false;
    const trouble = standsInTheWay(window.isSecureContext, "mediaDevices" in navigator && "audioWorklet" in sound.context, location.hostname);
    if (trouble) return this.listener.trouble(trouble);
    try {
      const warmUp = new WarmUp();
      const microphone = await Microphone.open(
        sound.context,
        this.preferences.input,
        (frame) => this.#line.hear(warmUp.pass(frame, sound.player.position !== null)),
        () => void this.#renewMicrophone(),
      );
      if (epoch !== this.#epoch) return microphone.close();
      microphone.mute(this.#muted);
      this.#microphone = microphone;
      if (!microphone.echoCancelled) this.listener.trouble(ECHO);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      const name = error instanceof DOMException ? error.name : String(error);
      this.#wantsMicrophone = name === "NotFoundError";
      this.listener.trouble(whyNoMicrophone(name));
    }
  }

  /** Another microphone was chosen, one went away or came. The line stays when Alice need not know. */
  async #renewMicrophone(): Promise<void> {
    const sound = this.#sound;
    if (!sound || this.#starting) return;
    const before = JSON.stringify(this.#hello(sound.context));
    this.#microphone?.close();
    this.#microphone = null;
    const epoch = ++this.#epoch;
    await this.#takeMicrophone(epoch);
    if (epoch !== this.#epoch) return;
    const hello = this.#hello(sound.context);
    if (JSON.stringify(hello) !== before) this.#line.open(hello);
    this.#changed();
    await this.#tellDevices();
  }

  #hello(context: AudioContext): Hello {
    return {
      name: "browser",
      input_rate: this.#microphone ? context.sampleRate : 0,
      output_rate: context.sampleRate,
      echo_cancelled: this.#microphone?.echoCancelled ?? false,
      acknowledges: true,
      sets_volume: true,
    };
  }

  get #state(): CallStatus["state"] {
    if (!this.#sound) return "off";
    if (this.#starting) return "starting";
    return this.#line.state.kind === "open" ? "on" : "reconnecting";
  }

  #lineIs(state: LineState): void {
    switch (state.kind) {
      case "connecting":
        // Alice goes on elsewhere.
        this.#sound?.player.flush();
        break;
      case "taken":
        this.stop();
        this.listener.trouble({ text: "Another device is Alice's microphone and loudspeaker now.", hint: "Press the button to take them back." });
        return;
      case "refused":
        this.stop();
        this.listener.trouble(state);
        return;
      default:
        break;
    }
    this.#changed();
  }

  #beat(): void {
    clearTimeout(this.#timer);
    const player = this.#sound?.player;
    if (!player) return;
    for (const ack of player.tick(performance.now())) {
      this.#line.tell(ack);
      if (ack.type === "finished") this.listener.finished({ turn: ack.turn, index: ack.index });
    }
    const position = player.position;
    if (position) this.listener.moved(position.segment, position.played_ms);
    const wait = player.wait;
    this.#timer = wait === null ? undefined : setTimeout(() => this.#beat(), wait);
  }

  #changed(): void {
    this.listener.changed(this.status);
  }
}

function openContext(): AudioContext {
  const context = new AudioContext({ latencyHint: "interactive" });
  if (context.sampleRate >= RATES.min && context.sampleRate <= RATES.max) return context;
  void context.close();
  return new AudioContext({ latencyHint: "interactive", sampleRate: RATES.max });
}

/** Asks the server why the line does not open. */
async function whyNot(): Promise<Refusal | null> {
  try {
    const response = await fetch("/audio");
    return refusal(response.status, await response.json().catch(() => null));
  } catch {
    // Nobody answers: she is being restarted, perhaps.
    return null;
  }
}
