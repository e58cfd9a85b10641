/** The lines of the talk, newest last. Pure; the view draws what `lines` says. */
import type { AliceEvent, HistoryEntry, Turn } from "./protocol";

export interface Line {
  key: string;
  fromUser: boolean;
  text: string;
  note: "" | "interrupted" | "speaking" | "failed";
}

const KEPT = 50;

export class Transcript {
  #lines: Line[] = [];
  /** What the user is saying and what is not certain yet. */
  hearing = "";

  get lines(): readonly Line[] {
    return this.#lines;
  }

  restore(history: readonly HistoryEntry[]): void {
    this.#lines = [];
    this.hearing = "";
    for (const entry of history) {
      this.#set(entry.turn, entry.from_user, entry.text, entry.interrupted ? "interrupted" : "");
    }
  }

  apply(event: AliceEvent): void {
    switch (event.type) {
      case "transcript":
        this.hearing = event.is_final ? "" : event.text;
        break;
      case "turn_started":
        this.hearing = "";
        this.#set(event.turn, true, event.user_text, "");
        break;
      case "turn_discarded":
        this.#lines = this.#lines.filter((line) => !line.key.startsWith(`${event.turn}-`));
        break;
      case "turn_completed":
        this.#set(event.turn, false, event.content, event.interrupted ? "interrupted" : "");
        break;
      case "turn_failed":
        this.#set(event.turn, false, event.error, "failed");
        break;
      default:
        break;
    }
  }

  /** The reply that is being spoken: what was said of it. */
  speaking(turn: Turn, said: string): void {
    const text = [turn.said, said].filter((part) => part !== "").join(" ");
    if (text !== "") this.#set(turn.turn, false, text, "speaking");
  }

  #set(turn: number, fromUser: boolean, text: string, note: Line["note"]): void {
    const key = `${turn}-${fromUser ? "user" : "alice"}`;
    const line = this.#lines.find((it) => it.key === key);
    if (text === "") {
      this.#lines = this.#lines.filter((it) => it !== line);
    } else if (line) {
      line.text = text;
      line.note = note;
    } else {
      this.#lines.push({ key, fromUser, text, note });
      if (this.#lines.length > KEPT) this.#lines.shift();
    }
  }
}
