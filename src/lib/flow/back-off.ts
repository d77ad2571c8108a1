// Delay before a retry: exponential back-off with full jitter and an upper bound.

interface BackOffOptions {
  /** Lower bound of every wait and upper bound of the first one. */
  readonly minMs: number;
  /** Upper bound of the longest wait. */
  readonly maxMs: number;
  readonly random: () => number;
}

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to wait after one more failure: uniform between `minMs` and a bound that doubles up to `maxMs`. */
  next(): number {
    const { minMs, maxMs, random } = this.#options;
    const bound = Math.min(maxMs, minMs * 2 ** Math.min(++this.#failures, 30));
    return minMs + random() * (bound - minMs);
  }

  reset(): void {
    this.#failures = 0;
  }
}
