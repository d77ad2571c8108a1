// When to poll: on a grid of the wall clock, so that everything with one interval shares its times.
import type { EpochMicros } from "../../core/point.ts";
import { epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";

export interface Slot {
  /** Start of the poll: the time of the grid, or now where it comes late. */
  readonly time: EpochMicros;
  /** Slots left out since the last one, because what was done in it took too long. */
  readonly skipped: number;
}

/** Starting up waits no longer than this for the grid: polling once an hour gives a first value at once. */
const longestFirstWaitMs = 1_000;
/** So much later than its time on the grid a poll is stamped with the clock instead. */
const latenessMs = 100;
/** The wall clock is looked at again so often while waiting: it may be set. */
const longestSleepMs = 30_000;

/**
 * Yields whenever a poll is due, the first time at once or within a second. The next one is asked for when the poll
 * is over: slots that passed meanwhile are skipped and counted, never made up for. A step of the wall clock neither
 * fires twice nor stalls. Ends by throwing `signal.reason`.
 */
export async function* slots(everyMs: number, clock: Clock, signal: AbortSignal): AsyncGenerator<Slot, never> {
  const every = everyMs * 1_000;
  /** Monotonic time, in milliseconds, of the slot served last. */
  let served = Number.NEGATIVE_INFINITY;
  signal.throwIfAborted();
  if (nextSlot(clock.now(), every) - clock.now() > longestFirstWaitMs * 1_000) {
    served = clock.monotonic();
    yield { time: clock.now(), skipped: 0 };
  }
  for (;;) {
    const slot = await reach(every, served, clock, signal);
    const late = clock.now() - slot;
    // Later than an interval: either nothing ran for so long, or the clock was set forward.
    const onGrid = clock.monotonic() - (late < every ? late / 1_000 : 0);
    const skipped = Math.max(0, Math.round((onGrid - served) / everyMs) - 1);
    served = onGrid;
    yield {
      time: late > latenessMs * 1_000 ? clock.now() : epochMicros(slot),
      skipped: Number.isFinite(skipped) ? skipped : 0,
    };
  }
}

/** First time of the grid after `now`, both in microseconds. */
export function nextSlot(now: number, every: number): number {
  return Math.floor(now / every + 1) * every;
}

/** Waits for the next slot and gives its time. */
async function reach(every: number, served: number, clock: Clock, signal: AbortSignal): Promise<number> {
  const choose = () => {
    const slot = nextSlot(clock.now(), every);
    // A clock that was set back a little comes by the same slot again.
    const sinceServed = (clock.monotonic() - served) * 1_000 + slot - clock.now();
    return sinceServed < every / 2 ? slot + every : slot;
  };
  let slot = choose();
  for (;;) {
    const wait = slot - clock.now();
    if (wait <= 0) return slot;
    // No slot is chosen that is further off than that: the clock was set back.
    if (wait > every * 1.5) slot = choose();
    else await clock.sleep(Math.min(wait / 1_000, longestSleepMs), signal);
  }
}
