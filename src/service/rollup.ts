// Aggregates points into buckets. Buckets begin at multiples of their width from an origin, not from the query's start.
import { parseTimestamp } from "../wire/timestamp.ts";
import type { Columns } from "./point-block.ts";

/** A Monday: weeks begin there. */
const origin = parseTimestamp("2000-01-03T00:00:00Z") ?? Number.NaN;

/** Buckets that hold points, by ascending start, in columns of one length. */
export interface Buckets {
  /** Start of each bucket, microseconds since the epoch. */
  readonly times: number[];
  readonly count: number[];
  readonly min: number[];
  readonly max: number[];
  readonly sum: number[];
  /** Mean of the samples, not weighted by time. */
  readonly avg: number[];
}

/** Where the bucket of a time begins. */
export type BucketStart = (time: number) => { readonly start: number; readonly end: number };

export function bucketsOf(micros: number): BucketStart {
  return (time) => {
    const start = origin + Math.floor((time - origin) / micros) * micros;
    return { start, end: start + micros };
  };
}

/** Everything in one bucket, stamped with the start of the window. */
export function oneBucket(from: number): BucketStart {
  return () => ({ start: from, end: Number.POSITIVE_INFINITY });
}

/** `blocks` by ascending time. */
export function rollUp(blocks: Iterable<Columns>, bucketOf: BucketStart): Buckets {
  const buckets: Buckets = { times: [], count: [], min: [], max: [], sum: [], avg: [] };
  let end = Number.NEGATIVE_INFINITY;
  let start = 0;
  let count = 0;
  let min = 0;
  let max = 0;
  let sum = 0;
  const close = () => {
    if (count === 0) return;
    buckets.times.push(start);
    buckets.count.push(count);
    buckets.min.push(min);
    buckets.max.push(max);
    buckets.sum.push(sum);
    buckets.avg.push(sum / count);
  };
  for (const { times, values } of blocks)
    for (let i = 0; i < times.length; i++) {
      const time = times[i]!;
      const value = values[i]!;
      if (time >= end) {
        close();
        ({ start, end } = bucketOf(time));
        count = 0;
        min = max = value;
        sum = 0;
      }
      count++;
      sum += value;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  close();
  return buckets;
}
