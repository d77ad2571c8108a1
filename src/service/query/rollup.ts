// Aggregates points into buckets.

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
  let start = 0;
  let count = 0;
  let min = 0;
  let max = 0;
  let sum = 0;
  let first = 0;
  let last = 0;
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
