// One method of the service: its calls run one at a time and start at least an interval apart, never in a burst.
import PQueue from "p-queue";
import type { Clock } from "../../core/runtime.ts";
import type { Turns } from "./turns.ts";

/** What is always allowed for the way to the service, and what at most, in milliseconds. */
const usualTransit = 50;
const mostTransit = 500;
/** Calls that the shortest way is taken from. */
const remembered = 8;
/** Between two looks whether another process has ended its call, and how long one may take at most, in milliseconds. */
const turnPollMs = 25;
const turnPatienceMs = 60_000;

/** Spacing on the monotonic clock. Counts from its creation, so that not even a crash loop goes over the rate. */
export class Pacer {
  /** Order and concurrency. Its own interval runs on the wall clock and is not used. */
  readonly #queue = new PQueue({ concurrency: 1 });
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #turns: Turns | undefined;
  #next: number;
  /** Milliseconds that the last calls took. */
  #transits: number[] = [];

  /** `turns`: with other processes, whose calls count too. */
  constructor(clock: Clock, requestsPerSecond: number, turns?: Turns) {
    this.#clock = clock;
    this.#turns = turns;
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
      await this.#turn(signal);
      const start = this.#clock.monotonic();
      this.#callAgainAt(start + this.#intervalMs);
      try {
        return await call();
      } finally {
        this.#callAgainAt(start + this.#intervalMs + this.#allowance(this.#clock.monotonic() - start));
        await this.#turns?.give();
      }
    });
  }

  #callAgainAt(time: number): void {
    this.#turns?.callAgainAt(time);
    // Others first, where they wait.
    this.#next = this.#turns ? time + 2 * turnPollMs : time;
  }

  /** Resolves when the interval is over and, where there are other processes, it is our turn. */
  async #turn(signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    let busySince: number | undefined;
    for (;;) {
      for (let wait = this.waitMs; wait > 0; wait = this.waitMs) await clock.sleep(wait, signal);
      if (!this.#turns) return;
      const now = clock.monotonic();
      if (this.#turns.take()) {
        const next = (await this.#turns.next()) ?? now;
        // Further away it can only be of before the machine was started.
        if (next <= now || next > now + this.#intervalMs + mostTransit) return;
        await this.#turns.give();
        this.#next = next;
      } else {
        busySince ??= now;
        // One that was stopped in the middle of a call must not stop others.
        if (now - busySince >= turnPatienceMs) return;
        await clock.sleep(turnPollMs, signal);
      }
    }
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
