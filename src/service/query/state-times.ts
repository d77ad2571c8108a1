// How long a signal was in each of its states, bucket by bucket.

import { RpcFault } from "../call/rpc-fault.ts";
import type { BlockColumns } from "../store/point-block.ts";
import type { BucketOf } from "./buckets.ts";

/** State → start of a bucket → microseconds in that state. */
type StateTimes = ReadonlyMap<number, ReadonlyMap<number, number>>;

/** How many buckets may still be filled. A single point can hold for 400 days of buckets of a microsecond. */
export interface StateBudget {
  left: number;
}

/** Buckets times states in one request. */
export const maxStateBuckets = 1_000_000;

interface StateOptions {
  /** Where the last state ends at the latest, microseconds since the epoch: the end of the window, or now. */
  readonly until: number;
  /** A state is not known to last longer than this after its point, microseconds. */
  readonly maxHold: number;
  readonly budget: StateBudget;
}

/**
 * A state holds from its point to the next one; values are rounded to whole states. What was before the first point of
 * the window is not known and counts for no state. Throws -32602 when the budget is spent.
 */
export function stateTimes(
  blocks: Iterable<BlockColumns>,
  bucketOf: BucketOf,
  { until, maxHold, budget }: StateOptions,
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
      const before = times.get(bucket.start);
      if (before === undefined && --budget.left < 0)
        throw new RpcFault("invalidParams", {
          params: { "data.rollup": ["too many buckets: narrow the window or use longer ones"] },
        });
      times.set(bucket.start, (before ?? 0) + part);
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
