/** What is seen of the page's own sound: a button, a request for a tap, and a group of settings. */
import type { CallStatus } from "./call";
import type { Choice, Choices } from "./devices";
import { OFFSET_MS, type SoundPreferences } from "./preferences";

export interface PanelActions {
  toggle(): void;
  unblock(): void;
  prefer(change: Partial<SoundPreferences>): void;
}

/** Where the parts of the panel go. */
export interface PanelPlaces {
  button: HTMLButtonElement;
  tap: HTMLButtonElement;
  settings: HTMLElement;
}

const TITLES: Record<CallStatus["state"], string> = {
  off: "Use this browser's microphone and speaker",
  starting: "Asking for the microphone…",
  on: "Stop using this browser's microphone and speaker",
  reconnecting: "The sound reconnects by itself; press to stop",
};
const LABELS: Record<CallStatus["state"], string> = { off: "Call", starting: "Call…", on: "Hang up", reconnecting: "Call…" };

export class SoundPanel {
  readonly #places: PanelPlaces;
  readonly #input: HTMLSelectElement;
  readonly #output: HTMLSelectElement;
  readonly #outputBox: HTMLElement;
  readonly #preferences: SoundPreferences;

  constructor(places: PanelPlaces, preferences: SoundPreferences, actions: PanelActions) {
    this.#places = places;
    this.#preferences = preferences;
    places.button.addEventListener("click", () => actions.toggle());
    places.tap.addEventListener("click", () => actions.unblock());
    this.#input = select((input) => actions.prefer({ input }));
    this.#output = select((output) => actions.prefer({ output }));
    this.#outputBox = labelled("Loudspeaker", this.#output);
    const offset = document.createElement("input");
    Object.assign(offset, { type: "number", min: String(OFFSET_MS.min), max: String(OFFSET_MS.max), step: "10" });
    offset.value = String(preferences.offset_ms);
    offset.addEventListener("change", () => {
      if (offset.checkValidity() && offset.value !== "") actions.prefer({ offset_ms: offset.valueAsNumber });
      else offset.reportValidity();
    });
    const offsetBox = labelled("Delay of the loudspeaker, ms", offset);
    offsetBox.title = "When her lips are ahead of her voice, as with Bluetooth, raise it.";
    places.settings.append(labelled("Microphone", this.#input), this.#outputBox, offsetBox);
    this.devices({ inputs: [], outputs: [] });
  }

  status(status: CallStatus): void {
    const { button, tap } = this.#places;
    button.dataset["call"] = status.state;
    button.setAttribute("aria-pressed", String(status.state !== "off"));
    button.title = status.microphone ? `${TITLES[status.state]} (${status.microphone})` : TITLES[status.state];
    button.setAttribute("aria-label", TITLES[status.state]);
    const label = button.querySelector("span") ?? button;
    label.textContent = LABELS[status.state];
    tap.hidden = !status.blocked;
    tap.textContent = status.microphone === null ? "Tap to hear" : "Tap to talk and hear";
  }

  devices({ inputs, outputs }: Choices): void {
    fill(this.#input, inputs, this.#preferences.input);
    fill(this.#output, outputs, this.#preferences.output);
    this.#outputBox.hidden = outputs.length === 0;
  }
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
