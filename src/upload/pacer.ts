// One method of the service: its calls run one at a time and start at least an interval apart, never in a burst.
import PQueue from "p-queue";
import type { Clock } from "../core/runtime.ts";

/** The slice of p-queue that gives order and concurrency; its own interval runs on the wall clock and is not used. */
interface Queue {
  add<T>(task: () => Promise<T>): Promise<T>;
}

/** The most that is added to the interval for the way to the service, in milliseconds. */
const mostTransit = 50;

/** Spacing on the monotonic clock. Counts from its creation, so that not even a crash loop goes over the rate. */
export class Pacer {
  readonly #queue: Queue = new PQueue({ concurrency: 1 });
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #next: number;

  constructor(clock: Clock, requestsPerSecond: number) {
    this.#clock = clock;
    this.#intervalMs = 1_000 / requestsPerSecond;
    this.#next = clock.monotonic() + this.#intervalMs;
  }

  /** Milliseconds until a call may start, if none is under way. */
  get waitMs(): number {
    return Math.max(0, this.#next - this.#clock.monotonic());
  }

  /**
   * Settles as `call` does, which starts when its turn has come and the interval is over. Rejects with `signal.reason`
   * when that comes first; `call` is not interrupted.
   */
  run<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#queue.add(async () => {
      signal.throwIfAborted();
      for (let wait = this.waitMs; wait > 0; wait = this.waitMs) await this.#clock.sleep(wait, signal);
      const start = this.#clock.monotonic();
      this.#next = start + this.#intervalMs;
      try {
        return await call();
      } finally {
        // The service counts when a request reaches it: some time between its start and its answer. A slow request
        // followed by a fast one would arrive less than the interval apart.
        const transit = Math.min(mostTransit, this.#clock.monotonic() - start);
        this.#next = start + this.#intervalMs + transit;
      }
    });
  }
}
