// The rows of platform.evaluate and the values of items and groups in them.
import type { BucketOf } from "../query/buckets.ts";
import type { DataQuery } from "../query/data-query.ts";
import { outsideSpans, pointBefore, pointFrom, startOfLast, type TimeSpan } from "../query/edge-points.ts";
import { maxStateBuckets, rollUp, stateTimes, tooManyBuckets } from "../query/rollup.ts";
import { holdOf } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { type Group, type ItemAggregation, isStateAggregation, type StateAggregation } from "./evaluate-params.ts";

/** Buckets times series of an answer. */
const maxCells = 2_000_000;
/** Buckets times items, those of groups included. */
const maxItemBuckets = 20_000_000;
/** Buckets times operations in formulas: seconds of work. */
const maxOperations = 100_000_000;

interface GridSource {
  readonly store: ServiceStore;
  readonly query: DataQuery;
  readonly bucketOf: BucketOf;
  /** Microseconds since the epoch. */
  readonly now: number;
}

/** What items are aggregated over. */
interface Grid extends GridSource {
  /** Start of each row, ascending. */
  readonly starts: readonly number[];
  /** Buckets that the window touches: the rows but for those of `outside`. */
  readonly inside: readonly number[];
  /** The first and the last row, where `outsidePoints` adds them. */
  readonly outside: { readonly earlier?: TimeSpan; readonly later?: TimeSpan };
}

/**
 * The end of the window that holds the last rows of every member, where these alone are wanted. Not with formulas, which
 * may have values in fewer rows.
 */
export function lastOfWindow(
  { store, query, bucketOf, now }: GridSource,
  members: readonly ItemAggregation[],
): DataQuery {
  const { last, from, before, isWindow, outsidePoints } = query;
  if (last === undefined || isWindow || outsidePoints) return query;
  // States end now.
  const span = { from, before: Math.min(before, now) };
  const starts = members.map(({ item, shift }) =>
    startOfLast(store, item.id, span, last + Math.abs(shift), (time) => bucketOf(time).start),
  );
  return { ...query, from: Math.max(from, Math.min(before, ...starts)) };
}

/** Throws -32602 when there would be too many rows for so many members, series and operations in formulas. */
export function gridOf(
  source: GridSource,
  members: readonly ItemAggregation[],
  series: number,
  operations: number,
): Grid {
  const { store, query, bucketOf } = source;
  const inside: number[] = [];
  for (let at = query.from; at < query.before; ) {
    const { start, end } = bucketOf(at);
    inside.push(start);
    at = end;
    const rows = inside.length;
    if (rows * series > maxCells || rows * members.length > maxItemBuckets || rows * operations > maxOperations)
      throw tooManyBuckets();
  }
  const outside = outsideSpans(store, new Set(members.map(({ item }) => item.id)), query);
  const starts = [outside.earlier?.from, ...inside, outside.later?.from].filter((start) => start !== undefined);
  return { ...source, starts, inside, outside };
}

/** One value of an item for each row. */
export function aggregateItem(grid: Grid, member: ItemAggregation): Float64Array {
  const { query, outside, bucketOf, starts } = grid;
  const { shift } = member;
  const wanted = wantedOf(grid, shift);
  const [first, last] = [wanted.inside[0], wanted.inside.at(-1)];
  // The window as a whole has no buckets before or after it.
  if (first === undefined || last === undefined || (query.isWindow && shift !== 0))
    return new Float64Array(starts.length).fill(Number.NaN);
  // Values that are shifted into the window come from outside of it.
  const from = shift > 0 ? first : query.from;
  const before = shift < 0 ? bucketOf(last).end : query.before;
  const values = new Map(valuesIn(grid, member, { from, before }));
  for (const start of [outside.earlier && wanted.all[0], outside.later && wanted.all.at(-1)])
    if (start !== undefined)
      for (const [time, value] of valuesIn(grid, member, spanAt(grid, start))) values.set(time, value);
  const zeroIn = isStateAggregation(member.aggregation) || member.aggregation === "count" ? dataOf(grid, member) : none;
  return Float64Array.from(wanted.all, (start) => values.get(start) ?? zeroOrMissing(grid, start, zeroIn));
}

/** What a state aggregation makes of the time in a state and the width of the bucket, both microseconds. */
const ofState: Readonly<Record<StateAggregation, (micros: number, width: number) => number>> = {
  "state-seconds": (micros) => micros / 1e6,
  "state-percent": (micros, width) => (micros / width) * 100,
  "state-rate": (micros, width) => micros / width,
};

/** Start of a bucket and value of the item in it, for buckets of the span that have one. */
function* valuesIn({ store, bucketOf, now }: Grid, { item, aggregation, state }: ItemAggregation, span: TimeSpan) {
  if (isStateAggregation(aggregation)) {
    // The grid has at most `maxCells` cells; a series that is shifted into it may fill as many buckets.
    const budget = { left: maxStateBuckets + maxCells };
    for (const [start, micros] of stateTimes(store, item, [span], { bucketOf, now, budget }).get(state) ?? [])
      yield [start, ofState[aggregation](micros, bucketOf(start).end - start)] as const;
  } else {
    const aggregates = rollUp(store.blocksOf(item.id, span.from, span.before), bucketOf);
    for (const [i, start] of aggregates.times.entries()) yield [start, aggregates[aggregation][i]!] as const;
  }
}

function spanAt({ bucketOf }: Grid, time: number): TimeSpan {
  const { start, end } = bucketOf(time);
  return { from: start, before: end };
}

const none: TimeSpan = { from: Number.POSITIVE_INFINITY, before: Number.NEGATIVE_INFINITY };

/** From the first point of an item to its last; of states to where the last one ends. */
function dataOf({ store, now }: Grid, { item, aggregation }: ItemAggregation): TimeSpan {
  const [first, last] = [pointFrom(store, item.id), pointBefore(store, item.id)];
  if (!first || !last) return none;
  const end = isStateAggregation(aggregation) ? Math.min(now, last.time + holdOf(item)) : last.time + 1;
  return { from: first.time, before: end };
}

/** What a bucket without a value has: 0 inside the range of the data. */
function zeroOrMissing({ bucketOf }: Grid, start: number, data: TimeSpan): number {
  return start < data.before && bucketOf(start).end > data.from ? 0 : Number.NaN;
}

/** One value of a group for each row; where none of its items has a value it has none, and their count is 0. */
export function aggregateGroup(grid: Grid, { items, aggregation }: Group): Float64Array {
  const rows = grid.starts.length;
  const count = new Float64Array(rows);
  const sum = new Float64Array(rows);
  const min = new Float64Array(rows).fill(Number.POSITIVE_INFINITY);
  const max = new Float64Array(rows).fill(Number.NEGATIVE_INFINITY);
  for (const item of items)
    for (const [row, value] of aggregateItem(grid, item).entries()) {
      if (Number.isNaN(value)) continue;
      count[row]!++;
      sum[row]! += value;
      min[row] = Math.min(min[row]!, value);
      max[row] = Math.max(max[row]!, value);
    }
  const avg = () => sum.map((total, row) => total / count[row]!);
  const values = aggregation === "avg" ? avg() : { count, sum, min, max }[aggregation];
  const ranges = aggregation === "count" ? items.map((item) => dataOf(grid, item)) : [];
  const zeroIn = {
    from: Math.min(none.from, ...ranges.map(({ from }) => from)),
    before: Math.max(none.before, ...ranges.map(({ before }) => before)),
  };
  return values.map((value, row) => (count[row] === 0 ? zeroOrMissing(grid, grid.starts[row]!, zeroIn) : value));
}

/**
 * Each missing value of an item replaced by the last one before it, as long as that is not older than the item's
 * `gapDetection`. The first of them may come from before the window.
 */
export function gapfilledItem(grid: Grid, member: ItemAggregation, values: Float64Array): Float64Array {
  const wanted = wantedOf(grid, member.shift).all;
  const hold = holdOf(member.item);
  // The window may begin within its first bucket; what lies before it there is in no row.
  const begin = member.shift === 0 && !grid.outside.earlier ? grid.query.from : wanted[0];
  const point = grid.query.isWindow ? undefined : pointBefore(grid.store, member.item.id, begin);
  let [known] = point ? valuesIn(grid, member, spanAt(grid, point.time)) : [];
  return values.map((value, row) => {
    const start = wanted[row]!;
    if (!Number.isNaN(value)) known = [start, value];
    return Number.isNaN(value) && known && start - known[0] <= hold ? known[1] : value;
  });
}

/** For each row, the start of the bucket that is `shift` before it. */
function wantedOf({ inside, outside, bucketOf }: Grid, shift: number) {
  const step = (at: number) => (shift > 0 ? bucketOf(at - 1).start : bucketOf(at).end);
  const beyond: number[] = [];
  for (let at = (shift > 0 ? inside[0] : inside.at(-1)) ?? 0; beyond.length < Math.abs(shift); )
    beyond.push((at = step(at)));
  const shifted =
    shift > 0
      ? [...beyond.toReversed(), ...inside].slice(0, inside.length)
      : [...inside, ...beyond].slice(-inside.length || inside.length);
  const stepped = (span: TimeSpan | undefined) => {
    let at = span?.from;
    for (let i = 0; at !== undefined && i < Math.abs(shift); i++) at = step(at);
    return at;
  };
  const all = [stepped(outside.earlier), ...shifted, stepped(outside.later)].filter((start) => start !== undefined);
  return { inside: shifted, all };
}
