// Aggregates points into buckets: numbers, and how long a signal was in each of its states.
import { RpcFault } from "../call/rpc-fault.ts";
import type { BlockColumns } from "../store/point-block.ts";
import type { BucketOf } from "./buckets.ts";

/** Buckets that hold points, by ascending start, in columns of one length. */
interface Aggregates {
  /** Start of each bucket, microseconds since the epoch. */
  readonly times: number[];
  readonly count: number[];
  readonly min: number[];
  readonly max: number[];
  readonly sum: number[];
  /** Mean of the samples, not weighted by time. */
  readonly avg: number[];
  readonly first: number[];
  readonly last: number[];
}

/** `blocks` by ascending time. */
export function rollUp(blocks: Iterable<BlockColumns>, bucketOf: BucketOf): Aggregates {
  const buckets: Aggregates = { times: [], count: [], min: [], max: [], sum: [], avg: [], first: [], last: [] };
  let end = Number.NEGATIVE_INFINITY;
  let [start, count, min, max, sum, first, last] = [0, 0, 0, 0, 0, 0, 0];
  const close = () => {
    if (count === 0) return;
    buckets.times.push(start);
    buckets.count.push(count);
    buckets.min.push(min);
    buckets.max.push(max);
    buckets.sum.push(sum);
    buckets.avg.push(sum / count);
    buckets.first.push(first);
    buckets.last.push(last);
  };
  for (const { times, values } of blocks)
    for (let i = 0; i < times.length; i++) {
      const time = times[i]!;
      const value = values[i]!;
      if (time >= end) {
        close();
        ({ start, end } = bucketOf(time));
        count = 0;
        min = max = first = value;
        sum = 0;
      }
      count++;
      sum += value;
      last = value;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  close();
  return buckets;
}

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
      if (before === undefined && --budget.left < 0) throw tooManyBuckets();
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

export function tooManyBuckets(): RpcFault {
  return new RpcFault("invalidParams", {
    params: { "data.rollup": ["too many buckets: narrow the window or use longer ones"] },
  });
}
