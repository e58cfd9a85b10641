/** The page around the avatar: text, buttons, messages. Knows the document and nothing else. */
import { Hold } from "./hold";
import type { FaceState, MicStatus, Snapshot, Subtitle } from "./protocol";
import type { Line } from "./transcript";

export interface Actions {
  send(text: string): void;
  stop(): void;
  /** The key of push-to-talk is down or up; fails when the server does not take it. */
  talk(pressed: boolean): Promise<unknown>;
  mute(muted: boolean): void;
  volume(volume: number): void;
}

function the<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`#${id} is missing`);
  return element as T;
}

const STATES: Record<FaceState, string> = {
  idle: "Ready",
  listening: "Listening",
  thinking: "Thinking…",
  speaking: "Speaking",
};
const MICS: Record<MicStatus["state"], string> = {
  off: "No microphone",
  opening: "Microphone opens…",
  live: "Mute",
  muted: "Unmute",
  lost: "Microphone lost",
};
const TOAST_MS = 9_000;
const TOASTS = 4;

export class View {
  readonly canvas = the<HTMLCanvasElement>("stage");
  readonly #status = the("status-text");
  readonly #list = the("transcript");
  readonly #said = the("said");
  readonly #unsaid = the("unsaid");
  readonly #mic = the<HTMLButtonElement>("mic");
  readonly #talk = the<HTMLButtonElement>("hold");
  readonly #hold: Hold;
  readonly #stop = the<HTMLButtonElement>("stop");
  readonly #text = the<HTMLInputElement>("text");
  readonly #volume = the<HTMLInputElement>("volume");
  readonly #rows = new Map<string, HTMLLIElement>();
  #connected = false;
  #drawn = "";

  constructor(actions: Actions) {
    the<HTMLFormElement>("bar").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.#text.value.trim();
      if (text === "") return;
      this.#text.value = "";
      actions.send(text);
    });
    this.#stop.addEventListener("click", () => actions.stop());
    const mute = (): void => actions.mute(this.#mic.dataset["mic"] === "live");
    this.#mic.addEventListener("click", mute);
    this.#volume.addEventListener("input", () => actions.volume(this.#volume.valueAsNumber));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") actions.stop();
      if (event.key.toLowerCase() === "m" && event.ctrlKey && !this.#mic.disabled) {
        event.preventDefault();
        mute();
      }
    });
    this.#hold = new Hold((down) => this.#talk.setAttribute("aria-pressed", String(down)), actions.talk);
    this.#holdByPointer();
    this.#holdByKey();
    // A page that is not looked at does not listen.
    window.addEventListener("blur", () => this.#hold.releaseAll());
    window.addEventListener("pagehide", () => this.#hold.leave());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#hold.releaseAll();
    });
    this.mic({ state: "off", device: null, reason: null });
  }

  /** Finds places for the page's own sound. */
  place({ button, tap, settings }: { button: HTMLElement; tap: HTMLElement; settings: HTMLElement }): void {
    this.#talk.before(button);
    const box = document.createElement("details");
    box.id = "sound-box";
    box.append(Object.assign(document.createElement("summary"), { textContent: "This browser's sound" }), settings);
    document.body.append(tap, box);
  }

  #holdByPointer(): void {
    const hold = this.#hold;
    const button = this.#talk;
    button.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      // The end is seen wherever the pointer is by then.
      button.setPointerCapture(event.pointerId);
      hold.press(`pointer ${event.pointerId}`);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      button.addEventListener(end, (event) => hold.release(`pointer ${event.pointerId}`));
    }
    // A long touch would open a menu, which takes the touch away.
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    // A click that no pointer made comes from assistive technology, which can't hold a button.
    button.addEventListener("click", (event) => {
      if (event.detail === 0) hold.toggle("click");
    });
  }

  #holdByKey(): void {
    const takes = (event: KeyboardEvent): boolean => {
      if (this.#talk.hidden || this.#talk.disabled) return false;
      if (document.activeElement === this.#talk) return event.code === "Space" || event.code === "Enter";
      return event.code === "Space" && !hasOwnUse(document.activeElement);
    };
    document.addEventListener("keydown", (event) => {
      if (!takes(event) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.#hold.press(event.code);
    });
    document.addEventListener("keyup", (event) => {
      // Without this, the button would be clicked as well.
      if (takes(event)) event.preventDefault();
      this.#hold.release(event.code);
    });
  }

  /** The button to hold is there when it is how Alice is spoken to. */
  mode(mode: Snapshot["mode"]): void {
    this.#talk.hidden = mode !== "push-to-talk";
    if (this.#talk.hidden) this.#hold.releaseAll();
  }

  name(name: string): void {
    the("name").textContent = name;
    document.title = name;
    this.#text.placeholder = `Write to ${name}`;
  }

  connected(connected: boolean): void {
    this.#connected = connected;
    document.body.classList.toggle("offline", !connected);
    this.#drawn = "";
    if (connected) return;
    this.#hold.releaseAll();
    this.#status.textContent = "Reconnecting…";
  }

  state(state: FaceState, subtitle: Subtitle, hearing: string): void {
    const drawn = `${state}\n${subtitle.text}\n${subtitle.said}\n${hearing}`;
    if (!this.#connected || drawn === this.#drawn) return;
    this.#drawn = drawn;
    document.body.dataset["state"] = state;
    this.#status.textContent = hearing === "" ? STATES[state] : hearing;
    this.#stop.disabled = state !== "speaking" && state !== "thinking";
    this.#said.textContent = subtitle.said;
    this.#unsaid.textContent = subtitle.text.slice(subtitle.said.length);
  }

  mic(mic: MicStatus): void {
    const usable = mic.state === "live" || mic.state === "muted";
    this.#mic.dataset["mic"] = mic.state;
    this.#mic.disabled = !usable;
    this.#mic.setAttribute("aria-pressed", String(mic.state === "muted"));
    const label = MICS[mic.state];
    this.#mic.setAttribute("aria-label", usable ? `${label} the microphone` : label);
    this.#mic.title = mic.reason ?? (usable ? `${label} (Ctrl+M)` : label);
    the("mic-label").textContent = label;
    this.#talk.disabled = mic.state !== "live";
    this.#talk.title = mic.state === "live" ? "Hold to talk (space bar)" : label;
    if (this.#talk.disabled) this.#hold.releaseAll();
  }

  volume(volume: number): void {
    if (document.activeElement !== this.#volume) this.#volume.valueAsNumber = volume;
  }

  transcript(lines: readonly Line[]): void {
    const kept = new Set(lines.map((line) => line.key));
    for (const [key, row] of this.#rows) {
      if (!kept.has(key)) {
        row.remove();
        this.#rows.delete(key);
      }
    }
    const list = this.#list;
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    for (const line of lines) {
      let row = this.#rows.get(line.key);
      if (!row) {
        row = document.createElement("li");
        row.className = line.fromUser ? "user" : "alice";
        this.#rows.set(line.key, row);
        list.append(row);
      }
      if (row.textContent !== line.text) row.textContent = line.text;
      row.dataset["note"] = line.note;
    }
    if (atEnd) list.scrollTop = list.scrollHeight;
  }

  loading(text: string): void {
    const box = the("loading");
    box.textContent = text;
    box.hidden = text === "";
  }

  /** A message with what to do about it. The same one is not stacked. */
  toast(level: "info" | "warning" | "error", text: string, hint: string | null): void {
    const box = the("toasts");
    for (const old of [...box.children]) {
      if ((old as HTMLElement).dataset["text"] === text) old.remove();
    }
    const toast = document.createElement("div");
    toast.className = `toast ${level}`;
    toast.dataset["text"] = text;
    const words = document.createElement("p");
    words.textContent = text;
    toast.append(words);
    if (hint) {
      const advice = document.createElement("p");
      advice.className = "hint";
      advice.textContent = hint;
      toast.append(advice);
    }
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Dismiss");
    close.addEventListener("click", () => toast.remove());
    toast.append(close);
    box.append(toast);
    while (box.children.length > TOASTS) box.firstElementChild?.remove();
    if (level !== "error") setTimeout(() => toast.remove(), TOAST_MS);
  }
}

/** Whether the space bar does something with this element already. */
function hasOwnUse(element: Element | null): boolean {
  return element instanceof HTMLElement && (element.isContentEditable || element.matches("input:not([type=range]), textarea, select, button, a"));
}
