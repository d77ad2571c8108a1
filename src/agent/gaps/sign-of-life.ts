// Up to when each source is accounted for: written down again and again, so that the next run knows where it takes over.
import type { EpochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Life } from "./gap-file.ts";

/** How exactly the begin of a gap is known after a kill. */
const everyMs = 10_000;
/** It is given at a look, one of which may come this much earlier in its second than the last one did. */
const earlyMs = 500;
/** A clock is set within this time, or will not be. */
const settingMs = 600_000;
/** A source that has not run for so long is forgotten. */
const forgottenUs = 90 * 86_400e6;

export class SignOfLife {
  /** What the agent before this one left. Undefined: there was none. */
  readonly former: Life | undefined;
  readonly #clock: Clock;
  readonly #running = new Set<string>();
  readonly #accounted: Map<string, EpochMicros>;
  readonly #beganAtMs: number;
  #givenAtMs = Number.NEGATIVE_INFINITY;
  #turn: number;

  constructor(former: Life | undefined, clock: Clock) {
    this.former = former;
    this.#clock = clock;
    this.#accounted = new Map(Object.entries(former?.sources ?? {}));
    this.#turn = former?.turn ?? 1;
    this.#beganAtMs = clock.monotonic();
  }

  /** Sources that account for their time themselves. */
  get running(): ReadonlySet<string> {
    return this.#running;
  }

  /** Up to when an earlier run accounts for this source, or this one until it was stopped. Undefined: it is new. */
  accountedUpTo(source: string): EpochMicros | undefined {
    return this.#accounted.get(source);
  }

  /** From now on the source accounts for its time itself. */
  runs(source: string): void {
    this.#running.add(source);
    // Soon on disk: were the agent killed at once, the next one knew nothing of the source.
    this.#givenAtMs = Number.NEGATIVE_INFINITY;
  }

  stopped(source: string): void {
    this.#running.delete(source);
    this.#accounted.set(source, this.#clock.now());
  }

  removed(source: string): void {
    this.#accounted.delete(source);
  }

  /** What may be written once every row that there is by now is on disk. Undefined: not yet. */
  next(stopped: boolean): Life | undefined {
    const [time, nowMs] = [this.#clock.now(), this.#clock.monotonic()];
    if (!stopped && nowMs - this.#givenAtMs < everyMs - earlyMs) return undefined;
    // A clock that is behind the last sign of life is still to be set.
    if (time < (this.former?.time ?? 0) && nowMs - this.#beganAtMs < settingMs) return undefined;
    this.#givenAtMs = nowMs;
    for (const source of this.#running) this.#accounted.set(source, time);
    for (const [source, at] of this.#accounted) if (at < time - forgottenUs) this.#accounted.delete(source);
    // The last one goes to `alive.json`, which is the only one that versions before read.
    this.#turn += stopped && this.#turn % 2 === 0 ? 2 : 1;
    return {
      time,
      stopped,
      monotonic: Math.round(nowMs),
      turn: this.#turn,
      sources: Object.fromEntries(this.#accounted),
    };
  }
}
