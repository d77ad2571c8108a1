// Persists regularly up to when each source is accounted for, so that the next run knows where to continue.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
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

export type SignOfLife = ReturnType<typeof signOfLife>;

export function signOfLife(former: Life | undefined, clock: Clock) {
  const running = new Map<string, () => EpochMicros>();
  let givenAtMs = Number.NEGATIVE_INFINITY;
  const accounted = new Map(Object.entries(former?.sources ?? {}));
  let turn: number = former?.turn ?? 1;
  const beganAtMs = clock.monotonic();

  return {
    /** The last sign of life of the previous agent. Undefined: there was none. */
    former,
    /** Sources that account for their own time, with up to when they do. */
    running,
    /** Up to when the source was accounted for before its last stop. Undefined: a new source. */
    accountedUpTo: (source: string): EpochMicros | undefined => accounted.get(source),
    /** From now on the source accounts for its own time: up to what `upTo` returns. */
    runs(source: string, upTo: () => EpochMicros): void {
      running.set(source, upTo);
      // Write soon: otherwise, after an early kill, the next run would not know the source.
      givenAtMs = Number.NEGATIVE_INFINITY;
    },
    stopped(source: string): void {
      running.delete(source);
      accounted.set(source, clock.now());
    },
    removed(source: string): void {
      accounted.delete(source);
    },
    /** The next sign of life. It may be written once all current rows are on disk. Undefined: not due yet. */
    next(stopped: boolean): Life | undefined {
      const [time, nowMs] = [clock.now(), clock.monotonic()];
      if (!stopped && nowMs - givenAtMs < everyMs - earlyMs) return undefined;
      // A clock behind the last sign of life has not been set yet.
      if (time < (former?.time ?? 0) && nowMs - beganAtMs < settingMs) return undefined;
      givenAtMs = nowMs;
      // A clock that was set back leaves times that are ahead.
      for (const [source, upTo] of running) accounted.set(source, epochMicros(Math.min(time, upTo())));
      for (const [source, at] of accounted) if (at < time - forgottenUs) accounted.delete(source);
      // The final sign goes to `alive.json`, the only file that older versions read.
      turn += stopped && turn % 2 === 0 ? 2 : 1;
      return { time, stopped, monotonic: Math.round(nowMs), turn, sources: Object.fromEntries(accounted) };
    },
  };
}
