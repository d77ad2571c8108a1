// How long a signal was in each of its states, bucket by bucket.

import type { Columns } from "../store/point-block.ts";
import type { BucketOf } from "./buckets.ts";

/** State → start of a bucket → microseconds in that state. */
export type StateTimes = ReadonlyMap<number, ReadonlyMap<number, number>>;

export interface StateOptions {
  /** Where the last state ends at the latest, microseconds since the epoch: the end of the window, or now. */
  readonly until: number;
  /** A state is not known to last longer than this after its point, microseconds. */
  readonly maxHold: number;
}

/**
 * A state holds from its point to the next one; values are rounded to whole states. What was before the first point of
 * the window is not known and counts for no state.
 */
export function stateTimes(
  blocks: Iterable<Columns>,
  bucketOf: BucketOf,
  { until, maxHold }: StateOptions,
): StateTimes {
  const states = new Map<number, Map<number, number>>();
  let state: number | undefined;
  let since = 0;
  const hold = (to: number) => {
    if (state === undefined) return;
    let times = states.get(state);
    if (!times) states.set(state, (times = new Map()));
    const end = Math.min(to, until, since + maxHold);
    for (let at = since; at < end; ) {
      const bucket = bucketOf(at);
      const part = Math.min(end, bucket.end) - at;
      times.set(bucket.start, (times.get(bucket.start) ?? 0) + part);
      at += part;
    }
  };
  for (const { times, values } of blocks)
    for (let i = 0; i < times.length; i++) {
      hold(times[i]!);
      state = Math.round(values[i]!);
      since = times[i]!;
    }
  hold(Number.POSITIVE_INFINITY);
  return states;
}
