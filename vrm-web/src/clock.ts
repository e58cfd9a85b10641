/**
 * The server's clock as seen from the page. Events carry the server's time; the one that travelled
 * fastest tells the difference best, so the smallest one counts and creeps up slowly, to follow
 * clocks that drift. A burst that arrives late moves nothing.
 */
export class ServerClock {
  #offset: number | null = null;

  /** Forgets everything: another server start has another clock. */
  reset(): void {
    this.#offset = null;
  }

  observe(serverMs: number, localMs: number): void {
    const offset = localMs - serverMs;
    this.#offset = this.#offset === null ? offset : Math.min(offset, this.#offset + CREEP_MS);
  }

  /** The server's time at a local time; never before anything was observed. */
  at(localMs: number): number {
    return localMs - (this.#offset ?? 0);
  }
}

const CREEP_MS = 0.01;
