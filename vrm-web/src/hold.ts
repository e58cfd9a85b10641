/**
 * The key of push-to-talk: it is held by a pointer, by keys, by a click of assistive technology, or by
 * several at once, and is down until the last lets go. Knows neither the document nor the server.
 */
export class Hold {
  readonly #by = new Set<string>();
  readonly #show: (down: boolean) => void;
  readonly #send: (down: boolean) => Promise<unknown>;
  /** What the server was told last. */
  #told = false;
  #telling = false;

  /** `show` is called when the key moves; `send` tells the server and is called one at a time. */
  constructor(show: (down: boolean) => void, send: (down: boolean) => Promise<unknown>) {
    this.#show = show;
    this.#send = send;
  }

  get down(): boolean {
    return this.#by.size > 0;
  }

  press(by: string): void {
    this.#change(() => this.#by.add(by));
  }

  release(by: string): void {
    this.#change(() => this.#by.delete(by));
  }

  toggle(by: string): void {
    if (this.#by.has(by)) this.release(by);
    else this.press(by);
  }

  /** Whoever holds it lets go: the page is left, hidden or cut off. */
  releaseAll(): void {
    this.#change(() => this.#by.clear());
  }

  /** The page goes away: nothing that waits for an answer would be sent any more. */
  leave(): void {
    // Let go already, as by the blur before, or not: what is under way may be the press.
    const waits = this.#telling;
    this.releaseAll();
    if (waits) this.#send(false).catch(() => undefined);
  }

  #change(change: () => void): void {
    const before = this.down;
    change();
    if (this.down === before) return;
    this.#show(this.down);
    void this.#tell();
  }

  /** Two requests on their way could overtake each other, and a release be undone by its press. */
  async #tell(): Promise<void> {
    if (this.#telling) return;
    this.#telling = true;
    while (this.#told !== this.down) {
      const down = this.down;
      try {
        await this.#send(down);
        this.#told = down;
      } catch {
        // Whoever holds the key must see that nobody listens. A lost release is not sent again by
        // itself: `#told` stays, so the next press and release say it.
        if (down) this.releaseAll();
        break;
      }
    }
    this.#telling = false;
  }
}
