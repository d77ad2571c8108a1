// Aggregates points into buckets: statistics of numbers, and durations of states.
import { rollupColumns } from "../../wire/results.ts";
import { invalidParams, type RpcFault } from "../call/rpc-fault.ts";
import type { BlockColumns } from "../store/block-format.ts";
import { holdOf, type ItemRecord } from "../store/resource-store.ts";
import type { ServiceStore } from "../store/store.ts";
import type { BucketOf, TimeSpan } from "./data-query.ts";
import { pointBefore } from "./edge-points.ts";

/** `avg` is the mean of the samples, not weighted by time. */
const aggregates = [...rollupColumns, "first", "last"] as const;

/** The non-empty buckets as columns of equal length, by ascending start in microseconds since the epoch. */
type Aggregates = Readonly<Record<"times" | (typeof aggregates)[number], number[]>>;

/** `blocks` must be in ascending order. */
export function rollUp(blocks: Iterable<BlockColumns>, bucketOf: BucketOf): Aggregates {
  const buckets: Aggregates = { times: [], count: [], min: [], max: [], sum: [], avg: [], first: [], last: [] };
  let end = Number.NEGATIVE_INFINITY;
  let [start, count, min, max, sum, first, last] = [0, 0, 0, 0, 0, 0, 0];
  const close = () => {
    if (count === 0) return;
    buckets.times.push(start);
    const values = { count, min, max, sum, avg: sum / count, first, last };
    for (const name of aggregates) buckets[name].push(values[name]);
  };
  for (const { times, values } of blocks)
    for (let i = 0; i < times.length; i++) {
      const time = times[i]!;
      const value = values[i]!;
      if (time >= end) {
        close();
        ({ from: start, before: end } = bucketOf(time));
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

/** How many buckets may still be filled. One point can fill 400 days of buckets of a microsecond. */
export interface StateBudget {
  left: number;
}

/** Buckets × states in one request. */
export const maxStateBuckets = 1_000_000;

interface StateOptions {
  readonly bucketOf: BucketOf;
  /** Wall time in microseconds since the epoch. States are unknown after it. */
  readonly now: number;
  readonly budget: StateBudget;
}

/**
 * The time an item was in each state within the ascending `spans`. A state lasts until the next point, at most
 * `gapDetection`. Values are rounded to integers. Throws -32602 when the budget is exhausted.
 */
export function stateTimes(
  store: ServiceStore,
  item: ItemRecord,
  spans: readonly TimeSpan[],
  { bucketOf, now, budget }: StateOptions,
): StateTimes {
  const states = new Map<number, Map<number, number>>();
  const maxHold = holdOf(item);
  const add = (state: number, from: number, to: number) => {
    for (let at = from; at < to; ) {
      const bucket = bucketOf(at);
      const part = Math.min(to, bucket.before) - at;
      let times = states.get(state);
      if (!times) states.set(state, (times = new Map()));
      const before = times.get(bucket.from);
      if (before === undefined && --budget.left < 0) throw tooManyBuckets();
      times.set(bucket.from, (before ?? 0) + part);
      at += part;
    }
  };
  for (const { from, before } of spans) {
    // Consecutive points in one state are added as one interval, since most points do not change the state.
    let held = pointBefore(store, item.id, from);
    let since = from;
    const leave = (to: number) => {
      if (held) add(Math.round(held.value), since, Math.min(to, now, held.time + maxHold));
    };
    for (const { times, values } of store.blocksOf(item.id, from, before))
      for (let i = 0; i < times.length; i++) {
        const time = times[i]!;
        const value = values[i]!;
        if (!held || Math.round(value) !== Math.round(held.value) || time > held.time + maxHold) {
          leave(time);
          since = time;
        }
        held = { time, value };
      }
    leave(before);
  }
  return states;
}

export function tooManyBuckets(): RpcFault {
  return invalidParams("data.rollup", "too many buckets: narrow the window or use longer ones");
}
