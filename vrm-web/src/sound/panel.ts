/**
 * What is seen of the page's own sound: a button, a request for a tap, and a group of settings. Makes
 * its elements; the page puts them where they belong.
 */
import "./sound.css";
import type { CallStatus } from "./call";
import type { Choice, Choices } from "./devices";
import { OFFSET_MS, type SoundPreferences } from "./preferences";

export interface PanelActions {
  toggle(): void;
  unblock(): void;
  prefer(change: Partial<SoundPreferences>): void;
}

const TITLES: Record<CallStatus["state"], string> = {
  off: "Use this browser's microphone and speaker (F2)",
  starting: "Asking for the microphone…",
  on: "Stop using this browser's microphone and speaker (F2)",
  reconnecting: "The sound reconnects by itself; press to stop (F2)",
};
const LABELS: Record<CallStatus["state"], string> = { off: "Call", starting: "Call…", on: "Hang up", reconnecting: "Call…" };
/** A telephone's handset. */
const ICON = "M6.6 3.5 9 3a1 1 0 0 1 1.1.6l1.2 2.9a1 1 0 0 1-.3 1.1L9.6 8.9a12 12 0 0 0 5.5 5.5l1.3-1.4a1 1 0 0 1 1.1-.3l2.9 1.2a1 1 0 0 1 .6 1.1l-.5 2.4a1.5 1.5 0 0 1-1.5 1.2A15.5 15.5 0 0 1 5.4 5a1.5 1.5 0 0 1 1.2-1.5z";

export class SoundPanel {
  readonly button = document.createElement("button");
  readonly tap = document.createElement("button");
  readonly settings = document.createElement("fieldset");
  readonly #label = document.createElement("span");
  readonly #input: HTMLSelectElement;
  readonly #output: HTMLSelectElement;
  readonly #outputBox: HTMLElement;
  readonly #preferences: SoundPreferences;

  constructor(preferences: SoundPreferences, actions: PanelActions) {
    this.#preferences = preferences;
    const { button, tap, settings } = this;
    for (const it of [button, tap]) it.type = "button";
    button.id = "call";
    button.append(icon(), this.#label);
    button.addEventListener("click", () => actions.toggle());
    tap.id = "tap";
    tap.addEventListener("click", () => actions.unblock());
    this.#input = select((input) => actions.prefer({ input }));
    this.#output = select((output) => actions.prefer({ output }));
    this.#outputBox = labelled("Speaker", this.#output);
    const offset = document.createElement("input");
    Object.assign(offset, { type: "number", min: String(OFFSET_MS.min), max: String(OFFSET_MS.max), step: "10" });
    offset.value = String(preferences.offset_ms);
    offset.addEventListener("change", () => {
      if (offset.value !== "" && offset.checkValidity()) actions.prefer({ offset_ms: offset.valueAsNumber });
      else offset.reportValidity();
    });
    const offsetBox = labelled("Delay of the speaker, ms", offset);
    offsetBox.title = "Raise it when her lips are ahead of her voice, as with Bluetooth.";
    settings.id = "sound";
    const legend = document.createElement("legend");
    legend.textContent = "This browser's sound";
    settings.append(legend, labelled("Microphone", this.#input), this.#outputBox, offsetBox);
    this.devices({ inputs: [], outputs: [] });
    this.status({ state: "off", microphone: null, blocked: false });
  }

  status({ state, microphone, blocked }: CallStatus): void {
    const { button, tap } = this;
    button.dataset["call"] = state;
    button.setAttribute("aria-pressed", String(state !== "off"));
    button.setAttribute("aria-label", TITLES[state]);
    button.title = microphone ? `${TITLES[state]}: ${microphone}` : TITLES[state];
    this.#label.textContent = LABELS[state];
    tap.hidden = !blocked;
    tap.textContent = microphone === null ? "Tap to hear" : "Tap to talk and hear";
  }

  devices({ inputs, outputs }: Choices): void {
    fill(this.#input, inputs, this.#preferences.input);
    fill(this.#output, outputs, this.#preferences.output);
    this.#outputBox.hidden = outputs.length === 0;
  }
}

function icon(): SVGSVGElement {
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(name, "path");
  path.setAttribute("d", ICON);
  svg.append(path);
  return svg;
}

function select(chosen: (id: string) => void): HTMLSelectElement {
  const list = document.createElement("select");
  list.addEventListener("change", () => chosen(list.value));
  return list;
}

function labelled(text: string, control: HTMLElement): HTMLLabelElement {
  const label = document.createElement("label");
  const words = document.createElement("span");
  words.textContent = text;
  label.append(words, control);
  return label;
}

/** What was chosen stays in the list when it is not there, so that it is taken again later. */
function fill(list: HTMLSelectElement, options: readonly Choice[], chosen: string): void {
  const known = options.length > 0 ? options : [{ id: "", label: "Chosen by the browser" }];
  const missing = chosen !== "" && !known.some(({ id }) => id === chosen);
  const all = missing ? [...known, { id: chosen, label: "The one chosen earlier" }] : known;
  list.replaceChildren(...all.map(({ id, label }) => new Option(label, id, false, id === chosen)));
}
