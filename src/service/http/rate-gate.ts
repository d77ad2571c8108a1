// Lets calls of one method and integration start at the documented rate; the others wait their turn.
import type { Clock } from "../../core/runtime.ts";
import { orAbort } from "../../lib/abort.ts";

/** First come, first served: never more than `count` starts in any span of `spanMs`. */
export class RateGate {
  readonly #clock: Clock;
  readonly #count: number;
  readonly #spanMs: number;
  /** The latest starts, at most `count` of them. */
  #starts: number[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock, count: number, spanMs = 1_000) {
    this.#clock = clock;
    this.#count = count;
    this.#spanMs = spanMs;
  }

  /** Milliseconds until a call could start, if it were alone. */
  waitMs(): number {
    const oldest = this.#starts.length < this.#count ? undefined : this.#starts[0];
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#spanMs - this.#clock.monotonic());
  }

  /** Starts now, or not at all. */
  tryStart(): boolean {
    if (this.waitMs() > 0) return false;
    this.#start();
    return true;
  }

  /** Resolves when the call may start. Rejects with `signal.reason`; then its place in the queue is free. */
  async start(signal: AbortSignal): Promise<void> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    try {
      await orAbort(before, signal);
      for (let wait = this.waitMs(); wait > 0; wait = this.waitMs()) await this.#clock.sleep(wait, signal);
      this.#start();
    } finally {
      // Who gives up must not let the next one pass those still before it.
      void before.then(turn.resolve);
    }
  }

  #start(): void {
    this.#starts.push(this.#clock.monotonic());
    if (this.#starts.length > this.#count) this.#starts.shift();
  }
}
