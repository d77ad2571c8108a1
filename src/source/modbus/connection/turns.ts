// Who may use the connection next: one at a time, unit by unit in a round, within a unit in the order they asked.

/**
 * A mutex whose waiters can give up. A unit with many intervals, or one read in many blocks, gets no more of the turns
 * than any other while others wait.
 */
export class Turns {
  #taken = false;
  /** By unit, the one whose turn comes next first. None is empty. */
  readonly #waiting = new Map<number, Set<() => void>>();

  get waiting(): number {
    return this.#waiting.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Resolves when it is the caller's turn, which lasts until the result is disposed. Rejects with `signal.reason`. */
  take(unit: number, signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const abort = () => {
        this.#remove(unit, begin);
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
      const ofUnit = this.#waiting.get(unit);
      if (ofUnit) ofUnit.add(begin);
      else this.#waiting.set(unit, new Set([begin]));
    });
  }

  #next(): void {
    this.#taken = false;
    const [next] = this.#waiting;
    if (!next) return;
    const [unit, ofUnit] = next;
    const [begin] = ofUnit;
    // To the end of the round, if it has more to ask.
    this.#waiting.delete(unit);
    if (ofUnit.size > 1) this.#waiting.set(unit, ofUnit);
    if (!begin) return;
    ofUnit.delete(begin);
    begin();
  }

  #remove(unit: number, begin: () => void): void {
    const ofUnit = this.#waiting.get(unit);
    ofUnit?.delete(begin);
    if (ofUnit?.size === 0) this.#waiting.delete(unit);
  }
}
