// When to poll: on a grid of the wall clock, so that everything with one interval shares its times.
import type { EpochMicros } from "../../../core/point.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";

export interface Slot {
  /** The time on the grid that the poll is for, however late it begins; a poll outside the grid has the time of its start. */
  readonly time: EpochMicros;
  /** Slots left out since the last one, because what was done in it took too long. */
  readonly skipped: number;
}

/** Starting up waits no longer than this for the grid: polling once an hour gives a first value at once. */
const longestFirstWaitMs = 1_000;
/** What is read at most this much after its slot, in microseconds, has the time of the slot. */
const latenessUs = 100_000;
/** What is read later has the last multiple of this: blocks that are read together share a time, of whichever source. */
const lateGridUs = 100_000;
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
    const now = clock.now();
    const late = now - slot;
    // Later than an interval: either nothing ran for so long, or the clock was set forward.
    const onGrid = clock.monotonic() - (late < every ? late / 1_000 : 0);
    const skipped = Math.max(0, Math.round((onGrid - served) / everyMs) - 1);
    served = onGrid;
    yield {
      time: epochMicros(late < every ? slot : Math.floor(now / every) * every),
      skipped: Number.isFinite(skipped) ? skipped : 0,
    };
  }
}

/**
 * The time of the values of a reply in a poll for `slot`. `poll`: the device read its registers between the request and
 * the reply; the middle is taken, which is wrong by half the round trip at most. Up to 100 ms after the slot it counts as
 * the slot; later it is rounded down to the grid, so that it lies after this slot and before the next one that can be
 * polled: the times of a value only grow.
 */
export function timeOfReply(
  time: "poll" | "reply",
  slot: EpochMicros,
  { at, tookMs }: { readonly at: EpochMicros; readonly tookMs: number },
): EpochMicros {
  if (time === "reply") return at;
  const readAt = at - tookMs * 500;
  return Math.abs(readAt - slot) <= latenessUs ? slot : epochMicros(Math.floor(readAt / lateGridUs) * lateGridUs);
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
