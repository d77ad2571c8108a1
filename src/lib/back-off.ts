// How long to wait before trying again: exponential, with full jitter, bounded.

interface BackOffOptions {
  /** Milliseconds: bound of the first wait, and the shortest wait. */
  readonly minMs: number;
  /** Milliseconds: bound of the longest wait. */
  readonly maxMs: number;
  readonly random: () => number;
}

/** Counts failures and says how long to wait after each. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to wait after one more failure: drawn evenly between `minMs` and a bound that doubles up to `maxMs`. */
  next(): number {
    const { minMs, maxMs, random } = this.#options;
    const bound = Math.min(maxMs, minMs * 2 ** Math.min(++this.#failures, 30));
    return minMs + random() * (bound - minMs);
  }

  reset(): void {
    this.#failures = 0;
  }
}
