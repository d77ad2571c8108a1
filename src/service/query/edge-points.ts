// Finds points next to a window: the value at its begin, and the first and last point of an item.
import type { ServiceStore } from "../store/store.ts";
import type { BucketOf, DataQuery, TimeSpan } from "./data-query.ts";

export interface EdgePoint {
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly value: number;
}

const earliest = Number.NEGATIVE_INFINITY;
const latest = Number.POSITIVE_INFINITY;

/** The last point of an item before `time`, if any. */
export function pointBefore(store: ServiceStore, item: string, time = latest): EdgePoint | undefined {
  return nearest(store, item, earliest, time, true);
}

/** The first point of an item at or after `time`, if any. */
export function pointFrom(store: ServiceStore, item: string, time = earliest): EdgePoint | undefined {
  return nearest(store, item, time, latest, false);
}

function nearest(store: ServiceStore, item: string, from: number, before: number, backwards: boolean) {
  let found: EdgePoint | undefined;
  for (const { number } of store.resources.signalsOf(item)) {
    const [block] = store.points.scan(number, from, before, backwards);
    const index = block && backwards ? block.times.length - 1 : 0;
    const point = block && { time: block.times[index]!, value: block.values[index]! };
    // At equal times, the signal created last wins, as in `blocksOf`.
    if (point && (!found || (backwards ? point.time >= found.time : point.time <= found.time))) found = point;
  }
  return found;
}

/**
 * A time from which an item has at least `count` rows, or `from`. A row is a bucket with points. Reads
 * backwards, so the newest point of a long history takes one block.
 */
export function startOfLast(
  store: ServiceStore,
  item: string,
  { from, before }: TimeSpan,
  count: number,
  bucketOf: BucketOf,
): number {
  let found = from;
  for (const { number } of store.resources.signalsOf(item)) {
    let left = count;
    let row = Number.NaN;
    for (const { times } of store.points.scan(number, from, before, true)) {
      for (let i = times.length - 1; i >= 0 && left > 0; i--) {
        const start = bucketOf(times[i]!).from;
        if (start !== row) left--;
        row = start;
      }
      if (left === 0) break;
    }
    if (left === 0) found = Math.max(found, row);
  }
  return found;
}

/** Without a rollup, each point is its own row. */
const rowOfPoint: BucketOf = (time) => ({ from: time, before: time + 1 });

/** With `outsidePoints`: the nearest point of any item on each side; with a rollup, its whole bucket. */
export function outsideSpans(
  store: ServiceStore,
  items: Iterable<string>,
  { from, before, bucketOf, isWindow, outsidePoints }: DataQuery,
): { readonly earlier?: TimeSpan; readonly later?: TimeSpan } {
  if (!outsidePoints || isWindow || from >= before) return {};
  const rowOf = bucketOf ?? rowOfPoint;
  const [begin, end] = [rowOf(from).from, rowOf(before - 1).before];
  let [nearestBefore, nearestAfter] = [earliest, latest];
  for (const item of items) {
    nearestBefore = Math.max(nearestBefore, pointBefore(store, item, begin)?.time ?? earliest);
    nearestAfter = Math.min(nearestAfter, pointFrom(store, item, end)?.time ?? latest);
  }
  return {
    ...(nearestBefore > earliest && { earlier: rowOf(nearestBefore) }),
    ...(nearestAfter < latest && { later: rowOf(nearestAfter) }),
  };
}

/** The spans of an item's rows. If only the last rows are wanted, just the end of the window. */
export function spansOf(store: ServiceStore, item: string, query: DataQuery): readonly TimeSpan[] {
  const { from, before, last, bucketOf = rowOfPoint } = query;
  const { earlier, later } = outsideSpans(store, [item], query);
  const start = last === undefined ? from : startOfLast(store, item, { from, before }, last, bucketOf);
  return [earlier, { from: start, before }, later].filter((span) => span !== undefined);
}
