// Lets calls of one method and integration start at the documented rate; the others wait their turn.
import PQueue from "p-queue";
import type { Clock } from "../../core/runtime.ts";

/** First come, first served: never more than `count` starts in any span of `spanMs`. */
export class RateGate {
  readonly #clock: Clock;
  readonly #count: number;
  readonly #spanMs: number;
  /** The latest starts, at most `count` of them. */
  #starts: number[] = [];
  readonly #queue = new PQueue({ concurrency: 1 });

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

  /** Calls that wait for their start. */
  get waiting(): number {
    return this.#queue.size + this.#queue.pending;
  }

  /** Resolves when the call may start. Rejects with `signal.reason`; then its place in the queue is free. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#queue.add(
      async () => {
        for (let wait = this.waitMs(); wait > 0; wait = this.waitMs()) await this.#clock.sleep(wait, signal);
        this.#start();
      },
      { signal },
    );
  }

  #start(): void {
    this.#starts.push(this.#clock.monotonic());
    if (this.#starts.length > this.#count) this.#starts.shift();
  }
}
