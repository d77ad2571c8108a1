// How long to wait after another client took over a session. Two clients that both reconnect at once take the session
// from each other several times a second, and neither receives much. The pause therefore grows with each takeover, even
// if messages arrive between them:
//
//   pause     10 s   30 s   60 s   60 s ...   plus up to a fifth, so that two agents do not move in step
//
// If the other client reconnects at once, each pause sees two takeovers: less than one in 10 s after the first pause.

const firstMs = 10_000;
const growth = 3;
const longestMs = 60_000;
/** After this time without a takeover the session is ours again. Longer than the pauses of two agents in turn. */
const quietMs = 300_000;

export class TakeoverPause {
  readonly #random: () => number;
  #takeovers = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Milliseconds to wait after a takeover at `nowMs` of the monotonic clock. */
  next(nowMs: number): number {
    this.#takeovers = nowMs - this.#lastMs < quietMs ? this.#takeovers + 1 : 1;
    this.#lastMs = nowMs;
    const pause = Math.min(longestMs, firstMs * growth ** Math.min(this.#takeovers - 1, 10));
    return pause * (1 + this.#random() / 5);
  }
}
