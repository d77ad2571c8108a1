// platform.evaluate: aggregates of items, and formulas over them, in common buckets.
import type { MethodCall } from "../call/params.ts";
import { type BucketOf, type DataQuery, oneBucket, readCurrentDataQuery, type TimeSpan } from "../query/data-query.ts";
import { outsideSpans, pointBefore, pointFrom, startOfLast } from "../query/edge-points.ts";
import { computeFormula, sizeOf } from "../query/formula.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { maxStateBuckets, rollUp, stateTimes, tooManyBuckets } from "../query/rollup.ts";
import { holdOf } from "../store/resource-store.ts";
import type { ServiceStore } from "../store/store.ts";
import {
  type Group,
  type ItemAggregation,
  isStateAggregation,
  readEvaluation,
  type StateAggregation,
} from "./evaluate-params.ts";
import { readAnswerFormat } from "./resource-view.ts";

export function evaluate(call: MethodCall): object {
  const { params, store, now, faults } = call;
  const { items, groups, calculations, aliases } = readEvaluation(call);
  const query = readCurrentDataQuery(params["data"], now, faults);
  const answers = readAnswerFormat(call, "data");
  if (!query.bucketOf) faults.add("data.rollup", "required");
  faults.throwIfAny();
  const bucketOf = query.bucketOf ?? oneBucket(query);
  const members = [...items, ...groups.flatMap((group) => group.items)];
  const operations = calculations.reduce((sum, { formula }) => sum + sizeOf(formula), 0);
  const whole = { store, query, bucketOf, now };
  const source = calculations.length > 0 ? whole : { ...whole, query: lastOfWindow(whole, members) };
  const grid = gridOf(source, members, aliases.size, operations);
  const { starts } = grid;
  const columns = new Map(items.map((item) => [item.alias, aggregateItem(grid, item)]));
  for (const group of groups) columns.set(group.alias, aggregateGroup(grid, group));
  const seconds = Float64Array.from(starts, (start) => start / 1e6);
  const widths = Float64Array.from(starts, (start) => (bucketOf(start).before - start) / 1e6);
  columns.set("time_seconds", seconds).set("bucket_seconds", widths);
  const column = (name: string) => columns.get(name) ?? new Float64Array(starts.length).fill(Number.NaN);
  const gapfilled = (alias: string) => {
    const item = items.find((candidate) => candidate.alias === alias);
    return item ? gapfilledItem(grid, item, column(alias)) : column(alias);
  };
  for (const { alias, formula } of calculations)
    columns.set(alias, computeFormula(formula, { rows: starts.length, column, gapfilled }));
  const frame = buildFrame(
    [...aliases]
      .filter((alias) => query.series === undefined || query.series.has(alias))
      .map((alias) => present(alias, starts, column(alias))),
    query.last,
  );
  const included = new Map(items.map(({ item }) => [item.id, item]));
  return answers.ofFrame(frame, -1, [...included.values()]);
}

/** Only the rows with a value. */
function present(key: string, starts: readonly number[], values: Float64Array): Column {
  const rows = [...values.keys()].filter((row) => Number.isFinite(values[row]));
  return { key, times: rows.map((row) => starts[row]!), values: rows.map((row) => values[row]!) };
}

/** Most buckets × series of a response. Without a series, most buckets. */
const maxCells = 2_000_000;
/** Most buckets × items, including those of groups. */
const maxItemBuckets = 20_000_000;
/** Most buckets × operations in formulas; this takes seconds. */
const maxOperations = 100_000_000;

interface GridSource {
  readonly store: ServiceStore;
  readonly query: DataQuery;
  readonly bucketOf: BucketOf;
  /** Microseconds since the epoch. */
  readonly now: number;
}

/** The rows over which items are aggregated. */
interface Grid extends GridSource {
  /** Start of each row, ascending. */
  readonly starts: readonly number[];
  /** Buckets in the window, without the rows of `outside`. */
  readonly inside: readonly number[];
  /** The first and last row, if `outsidePoints` adds them. */
  readonly outside: { readonly earlier?: TimeSpan; readonly later?: TimeSpan };
}

/** Narrows the window to its last rows. Not for formulas, which may have values in fewer rows. */
function lastOfWindow({ store, query, bucketOf, now }: GridSource, members: readonly ItemAggregation[]): DataQuery {
  const { last, from, before, isWindow, outsidePoints } = query;
  if (last === undefined || isWindow || outsidePoints) return query;
  // States end now.
  const span = { from, before: Math.min(before, now) };
  const starts = members.map(({ item, shift }) => startOfLast(store, item.id, span, last + Math.abs(shift), bucketOf));
  return { ...query, from: Math.max(from, Math.min(before, ...starts)) };
}

/** Throws -32602 if there are too many rows for the number of members, series and operations. */
function gridOf(source: GridSource, members: readonly ItemAggregation[], series: number, operations: number): Grid {
  const { store, query, bucketOf } = source;
  const inside: number[] = [];
  for (let at = query.from; at < query.before; ) {
    const { from, before } = bucketOf(at);
    inside.push(from);
    at = before;
    const rows = inside.length;
    if (
      rows * Math.max(1, series) > maxCells ||
      rows * members.length > maxItemBuckets ||
      rows * operations > maxOperations
    )
      throw tooManyBuckets();
  }
  const outside = outsideSpans(store, new Set(members.map(({ item }) => item.id)), query);
  const starts = [outside.earlier?.from, ...inside, outside.later?.from].filter((start) => start !== undefined);
  return { ...source, starts, inside, outside };
}

/** The value of an item in each row. */
function aggregateItem(grid: Grid, member: ItemAggregation): Float64Array {
  const { query, outside, bucketOf, starts } = grid;
  const { shift } = member;
  const wanted = wantedOf(grid, shift);
  const [first, last] = [wanted.inside[0], wanted.inside.at(-1)];
  // A window rollup has no buckets before or after it.
  if (first === undefined || last === undefined || (query.isWindow && shift !== 0))
    return new Float64Array(starts.length).fill(Number.NaN);
  // Values that are shifted into the window come from outside of it.
  const from = shift > 0 ? first : query.from;
  const before = shift < 0 ? bucketOf(last).before : query.before;
  const values = new Map(valuesIn(grid, member, { from, before }));
  for (const start of [outside.earlier && wanted.all[0], outside.later && wanted.all.at(-1)])
    if (start !== undefined)
      for (const [time, value] of valuesIn(grid, member, bucketOf(start))) values.set(time, value);
  const zeroIn = isStateAggregation(member.aggregation) || member.aggregation === "count" ? dataOf(grid, member) : none;
  return Float64Array.from(wanted.all, (start) => values.get(start) ?? zeroOrMissing(grid, start, zeroIn));
}

/** The value of a state aggregation from time in state and bucket width, both in microseconds. */
const ofState: Readonly<Record<StateAggregation, (micros: number, width: number) => number>> = {
  "state-seconds": (micros) => micros / 1e6,
  "state-percent": (micros, width) => (micros / width) * 100,
  "state-rate": (micros, width) => micros / width,
};

/** Bucket start and value for each bucket of the span with a value. */
function* valuesIn({ store, bucketOf, now }: Grid, { item, aggregation, state }: ItemAggregation, span: TimeSpan) {
  if (isStateAggregation(aggregation)) {
    // The grid has at most `maxCells` cells. A series shifted into it may fill as many buckets.
    const budget = { left: maxStateBuckets + maxCells };
    for (const [start, micros] of stateTimes(store, item, [span], { bucketOf, now, budget }).get(state) ?? [])
      yield [start, ofState[aggregation](micros, bucketOf(start).before - start)] as const;
  } else {
    const aggregates = rollUp(store.blocksOf(item.id, span.from, span.before), bucketOf);
    for (const [i, start] of aggregates.times.entries()) yield [start, aggregates[aggregation][i]!] as const;
  }
}

const none: TimeSpan = { from: Number.POSITIVE_INFINITY, before: Number.NEGATIVE_INFINITY };

/** From the first to the last point of an item; for states to the end of the last one. */
function dataOf({ store, now }: Grid, { item, aggregation }: ItemAggregation): TimeSpan {
  const [first, last] = [pointFrom(store, item.id), pointBefore(store, item.id)];
  if (!first || !last) return none;
  const end = isStateAggregation(aggregation) ? Math.min(now, last.time + holdOf(item)) : last.time + 1;
  return { from: first.time, before: end };
}

/** The value of an empty bucket: 0 inside the range of the data. */
function zeroOrMissing({ bucketOf }: Grid, start: number, data: TimeSpan): number {
  return start < data.before && bucketOf(start).before > data.from ? 0 : Number.NaN;
}

/** The value of a group in each row. Without item values it is missing, and the count is 0. */
function aggregateGroup(grid: Grid, { items, aggregation }: Group): Float64Array {
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

/** Replaces missing values by the last known one, even from before the window, up to `gapDetection` old. */
function gapfilledItem(grid: Grid, member: ItemAggregation, values: Float64Array): Float64Array {
  const wanted = wantedOf(grid, member.shift).all;
  const hold = holdOf(member.item);
  // The window may begin inside its first bucket; points before that are in no row.
  const begin = member.shift === 0 && !grid.outside.earlier ? grid.query.from : wanted[0];
  const point = grid.query.isWindow ? undefined : pointBefore(grid.store, member.item.id, begin);
  let [known] = point ? valuesIn(grid, member, grid.bucketOf(point.time)) : [];
  return values.map((value, row) => {
    const start = wanted[row]!;
    if (!Number.isNaN(value)) known = [start, value];
    return Number.isNaN(value) && known && start - known[0] <= hold ? known[1] : value;
  });
}

/** For each row, the start of the bucket that is `shift` before it. */
function wantedOf({ inside, outside, bucketOf }: Grid, shift: number) {
  const step = (at: number) => (shift > 0 ? bucketOf(at - 1).from : bucketOf(at).before);
  const beyond: number[] = [];
  for (let at = (shift > 0 ? inside[0] : inside.at(-1)) ?? 0; beyond.length < Math.abs(shift); )
    beyond.push((at = step(at)));
  const shifted =
    shift > 0
      ? [...beyond.toReversed(), ...inside].slice(0, inside.length)
      : [...inside, ...beyond].slice(beyond.length);
  const stepped = (span: TimeSpan | undefined) => {
    let at = span?.from;
    for (let i = 0; at !== undefined && i < Math.abs(shift); i++) at = step(at);
    return at;
  };
  const all = [stepped(outside.earlier), ...shifted, stepped(outside.later)].filter((start) => start !== undefined);
  return { inside: shifted, all };
}
