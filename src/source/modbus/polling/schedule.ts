// Schedules polls on a grid of the wall clock, so that all polls of one interval share their times.
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";

export interface Slot {
  /** Time of the poll on the grid, even if it starts late; a poll outside the grid has its start time. */
  readonly time: EpochMicros;
  /** Slots skipped since the last one because the poll took too long. */
  readonly skipped: number;
}

/** Longest wait for the first slot. An hourly poll thus gets its first value at once. */
const longestFirstWaitMs = 1_000;
/** Values read within this time of their slot get the time of the slot, in microseconds. */
const latenessUs = 100_000;
/** Later values are rounded down to this grid, so that blocks read together share a time, even across sources. */
const lateGridUs = 100_000;
/** Longest sleep before the wall clock is checked again, as it may be set. */
const longestSleepMs = 30_000;

/**
 * Yields when a poll is due: first within a second, then at each slot. Slots that pass during a poll are skipped and
 * counted. A step of the wall clock causes neither double polls nor a stall. Throws `signal.reason`.
 */
export async function* slots(everyMs: number, clock: Clock, signal: AbortSignal): AsyncGenerator<Slot, never> {
  const every = everyMs * 1_000;
  /** Monotonic time of the last slot in milliseconds. */
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
    // More than an interval late: the process was suspended, or the clock was set forward.
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
 * The time of values in a reply. With `poll`, it is the middle between request and reply, accurate to half the round
 * trip. Within 100 ms of the slot it becomes the slot; otherwise it is rounded down to the grid. It is then after this
 * slot and before the next possible one, so times only grow.
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

/** First time on the grid after `now`, both in microseconds. */
export function nextSlot(now: number, every: number): number {
  return Math.floor(now / every + 1) * every;
}

async function reach(every: number, served: number, clock: Clock, signal: AbortSignal): Promise<number> {
  const choose = () => {
    const slot = nextSlot(clock.now(), every);
    // A clock that was set back slightly reaches the same slot again.
    const sinceServed = (clock.monotonic() - served) * 1_000 + slot - clock.now();
    return sinceServed < every / 2 ? slot + every : slot;
  };
  let slot = choose();
  for (;;) {
    const wait = slot - clock.now();
    if (wait <= 0) return slot;
    // The slot is too far away: the clock was set back.
    if (wait > every * 1.5) slot = choose();
    else await clock.sleep(Math.min(wait / 1_000, longestSleepMs), signal);
  }
}
