// One method of the service: its calls run one at a time and start at least an interval apart, never in a burst.
import PQueue from "p-queue";
import type { Clock } from "../core/runtime.ts";

/** The slice of p-queue that gives order and concurrency; its own interval runs on the wall clock and is not used. */
interface Queue {
  add<T>(task: () => Promise<T>): Promise<T>;
}

/** What is always allowed for the way to the service, and what at most, in milliseconds. */
const usualTransit = 50;
const mostTransit = 500;
/** Calls that the shortest way is taken from. */
const remembered = 8;

/** Spacing on the monotonic clock. Counts from its creation, so that not even a crash loop goes over the rate. */
export class Pacer {
  readonly #queue: Queue = new PQueue({ concurrency: 1 });
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #next: number;
  /** Milliseconds that the last calls took. */
  #transits: number[] = [];

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
        this.#next = start + this.#intervalMs + this.#allowance(this.#clock.monotonic() - start);
      }
    });
  }

  /**
   * The service counts when a request reaches it: some time between its start and its answer. A late one before a prompt
   * one would reach it less than the interval apart, so what this one took longer than others do is added. Of the first
   * nobody knows: it connects, and may have been late by all it took.
   */
  #allowance(transit: number): number {
    const first = this.#transits.length === 0;
    this.#transits = [...this.#transits.slice(1 - remembered), transit];
    const longer = first ? transit : transit - Math.min(...this.#transits);
    return Math.max(Math.min(usualTransit, transit), Math.min(mostTransit, longer));
  }
}
