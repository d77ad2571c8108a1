// platform.evaluate: aggregates of items, and formulas over them, on one grid of buckets.
import type { MethodCall } from "../call/params.ts";
import { Faults } from "../call/rpc-fault.ts";
import { type BucketOf, oneBucket } from "../query/buckets.ts";
import { type DataQuery, readCurrentDataQuery } from "../query/data-query.ts";
import { computeFormula } from "../query/formula.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { maxStateBuckets, rollUp, stateTimes, tooManyBuckets } from "../query/rollup.ts";
import { holdOf } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { lastOf } from "./data-frame.ts";
import {
  type GroupAggregation,
  type ItemAggregation,
  isStateAggregation,
  readCalculations,
  readGroups,
  readItemAggregations,
  type StateAggregation,
} from "./evaluate-params.ts";
import { answerOf, readAnswerOptions } from "./resource-view.ts";

/** Buckets times series. */
const maxCells = 2_000_000;

/** What an item is aggregated over. */
interface Grid {
  readonly store: ServiceStore;
  readonly query: DataQuery;
  readonly bucketOf: BucketOf;
  /** Of the buckets that the window touches, ascending. */
  readonly starts: readonly number[];
  readonly now: number;
}

export function evaluate(call: MethodCall): object {
  const { params, store, now } = call;
  const faults = new Faults();
  const aliases = new Set<string>();
  const items = readItemAggregations(params["items"], store, aliases, faults);
  const groups = readGroups(params["groups"], store, aliases, faults);
  const calculations = readCalculations(params["calculations"], items, aliases, faults);
  const query = readCurrentDataQuery(params["data"], now, faults);
  const options = readAnswerOptions(call, "data", faults);
  if (!query.bucketOf) faults.add("data.rollup", "required");
  faults.throwIfAny();
  const bucketOf = query.bucketOf ?? oneBucket({ start: query.from, end: query.before });
  const starts = startsOf(query, bucketOf, aliases.size);
  const grid: Grid = { store, query, bucketOf, starts, now };
  const columns = new Map(items.map((item) => [item.alias, aggregate(grid, item)]));
  for (const { alias, aggregation, items: members } of groups)
    columns.set(
      alias,
      grouped(
        members.map((item) => aggregate(grid, item)),
        aggregation,
        starts.length,
      ),
    );
  const gapfilled = (alias: string) => {
    const item = items.find((candidate) => candidate.alias === alias)?.item;
    return filled(column(alias), starts, item ? holdOf(item) : 0);
  };
  const ofStarts = (compute: (start: number) => number) => Float64Array.from(starts, compute);
  columns.set(
    "time_seconds",
    ofStarts((start) => start / 1e6),
  );
  columns.set(
    "bucket_seconds",
    ofStarts((start) => (bucketOf(start).end - start) / 1e6),
  );
  const column = (name: string) => columns.get(name) ?? new Float64Array(starts.length).fill(Number.NaN);
  for (const { alias, formula } of calculations)
    columns.set(alias, computeFormula(formula, { rows: starts.length, column, gapfilled }));
  const frame = buildFrame(
    [...aliases]
      .filter((alias) => query.series === undefined || query.series.has(alias))
      .map((alias) => lastOf(present(alias, starts, column(alias)), query.last)),
  );
  const included = new Map(items.map(({ item }) => [item.id, item]));
  return answerOf(options.format.dataAsArray ? [frame] : frame, -1, options, [...included.values()]);
}

function startsOf({ from, before }: DataQuery, bucketOf: BucketOf, series: number): number[] {
  const starts: number[] = [];
  for (let at = from; at < before; ) {
    const { start, end } = bucketOf(at);
    starts.push(start);
    at = end;
    if (starts.length * series > maxCells) throw tooManyBuckets();
  }
  return starts;
}

/** What a state aggregation makes of the time in a state and the width of the bucket, both microseconds. */
const ofState: Readonly<Record<StateAggregation, (micros: number, width: number) => number>> = {
  "state-seconds": (micros) => micros / 1e6,
  "state-percent": (micros, width) => (micros / width) * 100,
  "state-rate": (micros, width) => micros / width,
};

/** One value of an item for each bucket of the grid. */
function aggregate({ store, query, bucketOf, starts, now }: Grid, member: ItemAggregation): Float64Array {
  const { item, aggregation, state, shift } = member;
  const last = starts.at(-1);
  // The window as a whole has no buckets before or after it.
  if (last === undefined || (query.isWindow && shift !== 0)) return new Float64Array(starts.length).fill(Number.NaN);
  const wanted = shifted(starts, shift, bucketOf);
  // Where values are shifted into the window, points from outside it are needed.
  const from = shift > 0 ? (wanted[0] ?? query.from) : query.from;
  const before = shift < 0 ? bucketOf(wanted.at(-1) ?? last).end : query.before;
  const blocks = store.blocksOf(item.id, from, before);
  const byStart = new Map<number, number>();
  if (isStateAggregation(aggregation)) {
    // The grid is bounded already; what is shifted into it may be wide as well.
    const budget = { left: maxStateBuckets + maxCells };
    const times = stateTimes(blocks, bucketOf, { until: Math.min(now, before), maxHold: holdOf(item), budget });
    for (const [start, micros] of times.get(state) ?? [])
      byStart.set(start, ofState[aggregation](micros, bucketOf(start).end - start));
  } else {
    const aggregates = rollUp(blocks, bucketOf);
    for (const [i, start] of aggregates.times.entries()) byStart.set(start, aggregates[aggregation][i] ?? Number.NaN);
  }
  return Float64Array.from(wanted, (start) => byStart.get(start) ?? Number.NaN);
}

const sumOf = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
/** Of at least one value. */
const ofGroup: Readonly<Record<GroupAggregation, (values: readonly number[]) => number>> = {
  count: (values) => values.length,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  sum: sumOf,
  avg: (values) => sumOf(values) / values.length,
};

/** One column of several; where none has a value it has none. */
function grouped(columns: readonly Float64Array[], aggregation: GroupAggregation, rows: number): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => {
    const values = columns.map((column) => column[row] ?? Number.NaN).filter((value) => !Number.isNaN(value));
    return values.length === 0 ? Number.NaN : ofGroup[aggregation](values);
  });
}

/** For each bucket of the grid, the start of the one that is `shift` before it. */
function shifted(starts: readonly number[], shift: number, bucketOf: BucketOf): readonly number[] {
  const outside: number[] = [];
  for (let i = 0, at = (shift > 0 ? starts[0] : starts.at(-1)) ?? 0; i < Math.abs(shift); i++) {
    at = shift > 0 ? bucketOf(at - 1).start : bucketOf(at).end;
    outside.push(at);
  }
  return shift > 0
    ? [...outside.toReversed(), ...starts].slice(0, starts.length)
    : [...starts, ...outside].slice(-starts.length);
}

/** Each missing value replaced by the last one before it, as long as that is not older than the gap. */
function filled(values: Float64Array, starts: readonly number[], gapMicros: number): Float64Array {
  const result = Float64Array.from(values);
  let from = -1;
  for (let row = 0; row < result.length; row++)
    if (!Number.isNaN(values[row])) from = row;
    else if (from >= 0 && (starts[row] ?? 0) - (starts[from] ?? 0) <= gapMicros) result[row] = values[from]!;
  return result;
}

/** The rows that have a value. */
function present(key: string, starts: readonly number[], values: Float64Array): Column {
  const rows = [...values.keys()].filter((row) => Number.isFinite(values[row]));
  return { key, times: rows.map((row) => starts[row]!), values: rows.map((row) => values[row]!) };
}
