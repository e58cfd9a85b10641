/** Exactly one `EventSource` at a time, renewed with growing pauses, going on where it stopped. */
import { EVENT_TYPES, type AliceEvent, type Snapshot } from "./protocol";

export interface Listener {
  snapshot(snapshot: Snapshot, newEpoch: boolean): void;
  event(event: AliceEvent): void;
  /** The line is gone; it is tried again by itself. */
  lost(attempt: number): void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** The pause before a try: doubles from half a second, at most eight, spread by a quarter. */
export function pauseMs(attempt: number, random: number): number {
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.max(0, attempt - 1), LONGEST_PAUSE_MS);
  return pause * (0.75 + random * 0.5);
}

export class Connection {
  /** How many sources are open now, and how many were opened. */
  live = 0;
  opened = 0;
  #source: EventSource | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;
  #lastId = "";
  #epoch = "";

  constructor(private readonly listener: Listener) {}

  open(): void {
    this.#close();
    const query = this.#lastId ? `?last_event_id=${encodeURIComponent(this.#lastId)}` : "";
    const source = new EventSource(`/events${query}`);
    this.#source = source;
    this.live++;
    this.opened++;
    const take = <T>(message: MessageEvent<string>, use: (data: T) => void): void => {
      if (message.lastEventId) this.#lastId = message.lastEventId;
      use(JSON.parse(message.data) as T);
    };
    source.addEventListener("snapshot", (message) =>
      take<Snapshot>(message, (snapshot) => {
        this.#attempt = 0;
        const newEpoch = snapshot.epoch !== this.#epoch;
        this.#epoch = snapshot.epoch;
        this.listener.snapshot(snapshot, newEpoch);
      }),
    );
    for (const type of EVENT_TYPES) {
      source.addEventListener(type, (message) =>
        take<AliceEvent>(message as MessageEvent<string>, (event) => this.listener.event(event)),
      );
    }
    source.onerror = () => {
      if (source !== this.#source) return;
      this.#close();
      this.#attempt++;
      this.listener.lost(this.#attempt);
      this.#timer = setTimeout(() => this.open(), pauseMs(this.#attempt, Math.random()));
    };
  }

  #close(): void {
    clearTimeout(this.#timer);
    if (!this.#source) return;
    this.#source.close();
    this.#source = null;
    this.live--;
  }
}
