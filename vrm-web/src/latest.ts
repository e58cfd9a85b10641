/** Of jobs that overlap only the last one counts; what the others made is thrown away. */
export class Latest<T> {
  #request = 0;

  constructor(private readonly discard: (made: T) => void) {}

  /** What the job made, or `null` when another one began since. Fails like the job, unless it is stale. */
  async run(job: () => Promise<T>, timeoutMs: number): Promise<T | null> {
    const request = ++this.#request;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const work = job().then((made) => {
      if (over || request !== this.#request) {
        this.discard(made);
        return null;
      }
      return made;
    });
    const late = new Promise<never>((_, fail) => {
      timer = setTimeout(() => fail(new Error(`it did not load within ${Math.round(timeoutMs / 1000)} s`)), timeoutMs);
    });
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      if (request !== this.#request) return null;
      throw error;
    } finally {
      over = true;
      clearTimeout(timer);
      // A job that fails after its time fails quietly: it was told already.
      work.catch(() => undefined);
    }
  }
}
