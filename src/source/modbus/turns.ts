// Who may use the connection next: one at a time, in the order they asked.

/** A mutex whose waiters can give up. Everyone who polls waits with one request at most, so turns go round. */
export class Turns {
  #taken = false;
  readonly #waiting = new Set<() => void>();

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves when it is the caller's turn, which lasts until the result is disposed. Rejects with `signal.reason`. */
  take(signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const abort = () => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", abort);
        this.#taken = true;
        resolve({ [Symbol.dispose]: () => this.#next() });
      };
      if (!this.#taken) {
        begin();
        return;
      }
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.add(begin);
    });
  }

  #next(): void {
    this.#taken = false;
    const [first] = this.#waiting;
    if (!first) return;
    this.#waiting.delete(first);
    first();
  }
}
