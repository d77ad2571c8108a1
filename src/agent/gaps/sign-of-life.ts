// Persists regularly up to when each source is accounted for, so that the next run knows where to continue.
import type { EpochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Life } from "./gap-file.ts";

/** Interval of the signs of life. After a kill, the begin of a gap is known this exactly. */
const everyMs = 10_000;
/** The check runs once a second and may come this much early. */
const earlyMs = 500;
/** A clock that will be set is set within this time. */
const settingMs = 600_000;
/** A source that has not run for this long is forgotten. */
const forgottenUs = 90 * 86_400e6;

export class SignOfLife {
  /** The last sign of life of the previous agent. Undefined: there was none. */
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

  /** Sources that account for their own time. */
  get running(): ReadonlySet<string> {
    return this.#running;
  }

  /** Up to when the source was accounted for before its last stop. Undefined: a new source. */
  accountedUpTo(source: string): EpochMicros | undefined {
    return this.#accounted.get(source);
  }

  /** From now on the source accounts for its own time. */
  runs(source: string): void {
    this.#running.add(source);
    // Write soon: otherwise, after an early kill, the next run would not know the source.
    this.#givenAtMs = Number.NEGATIVE_INFINITY;
  }

  stopped(source: string): void {
    this.#running.delete(source);
    this.#accounted.set(source, this.#clock.now());
  }

  removed(source: string): void {
    this.#accounted.delete(source);
  }

  /** The next sign of life. It may be written once all current rows are on disk. Undefined: not due yet. */
  next(stopped: boolean): Life | undefined {
    const [time, nowMs] = [this.#clock.now(), this.#clock.monotonic()];
    if (!stopped && nowMs - this.#givenAtMs < everyMs - earlyMs) return undefined;
    // A clock behind the last sign of life has not been set yet.
    if (time < (this.former?.time ?? 0) && nowMs - this.#beganAtMs < settingMs) return undefined;
    this.#givenAtMs = nowMs;
    for (const source of this.#running) this.#accounted.set(source, time);
    for (const [source, at] of this.#accounted) if (at < time - forgottenUs) this.#accounted.delete(source);
    // The final sign goes to `alive.json`, the only file that older versions read.
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
