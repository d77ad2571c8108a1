// platform.evaluate: aggregates of items, and formulas over them, on one grid of buckets.

import type { MethodCall } from "../call/call.ts";
import { Faults, RpcFault } from "../call/rpc-fault.ts";
import type { BucketOf } from "../query/buckets.ts";
import { bucketsOfQuery, type DataQuery, readCurrentDataQuery } from "../query/data-query.ts";
import { computeFormula } from "../query/formula.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { rollUp } from "../query/rollup.ts";
import { maxStateBuckets, stateTimes } from "../query/state-times.ts";
import { holdOf, itemBlocks } from "../store/item-data.ts";
import type { ServiceStore } from "../store/store.ts";
import { lastOf } from "./data-frame.ts";
import {
  type GroupAggregation,
  type ItemAggregation,
  readCalculations,
  readGroups,
  readItemAggregations,
} from "./evaluate-params.ts";
import { includedMember, readFormat, readInclude } from "./selection.ts";
import { itemResource } from "./typed-resource.ts";

/** Buckets times series. */
const maxCells = 2_000_000;

export function evaluate({ params, store, now }: MethodCall): object {
  const faults = new Faults();
  const aliases = new Set<string>();
  const items = readItemAggregations(params["items"], store, aliases, faults);
  const groups = readGroups(params["groups"], store, aliases, faults);
  const calculations = readCalculations(params["calculations"], items, aliases, faults);
  const query = readCurrentDataQuery(params["data"], now, faults);
  const includesItems = readInclude(params["include"], faults);
  const format = readFormat(params["format"], { dataAsArray: false, groupIncludedByType: false }, faults);
  const bucketOf = bucketsOfQuery(query);
  if (!bucketOf) faults.add("data.rollup", "required");
  faults.throwIfAny();
  const grid = bucketOf ? gridOf(query, bucketOf, aliases.size) : [];
  const columns = new Map<string, Float64Array>();
  for (const item of items)
    columns.set(item.alias, bucketOf ? aggregate(store, item, query, grid, bucketOf, now) : new Float64Array());
  for (const { alias, aggregation, items: members } of groups) {
    const all = members.map((item) =>
      bucketOf ? aggregate(store, item, query, grid, bucketOf, now) : new Float64Array(),
    );
    columns.set(alias, grouped(all, aggregation, grid.length));
  }
  const gapfilled = (alias: string) => {
    const item = items.find((candidate) => candidate.alias === alias)?.item;
    return filled(columns.get(alias) ?? new Float64Array(), grid, item ? holdOf(item) : 0);
  };
  columns.set(
    "time_seconds",
    Float64Array.from(grid, (start) => start / 1e6),
  );
  columns.set(
    "bucket_seconds",
    Float64Array.from(grid, (start) => (bucketOf ? (bucketOf(start).end - start) / 1e6 : 0)),
  );
  const column = (name: string) => columns.get(name) ?? new Float64Array(grid.length).fill(Number.NaN);
  for (const { alias, formula } of calculations)
    columns.set(alias, computeFormula(formula, { rows: grid.length, column, gapfilled }));
  const frame = buildFrame(
    [...aliases]
      .filter((alias) => query.series === undefined || query.series.has(alias))
      .map((alias) => lastOf(present(alias, grid, column(alias)), query.last)),
  );
  const included = new Map(items.map(({ item }) => [item.id, itemResource(item)]));
  return {
    meta: { total: -1, format },
    data: format.dataAsArray ? [frame] : frame,
    ...includedMember(includesItems ? [...included.values()] : undefined, format),
  };
}

/** Starts of the buckets that the window touches. */
function gridOf({ from, before }: DataQuery, bucketOf: BucketOf, series: number): number[] {
  const grid: number[] = [];
  for (let at = from; at < before; ) {
    const { start, end } = bucketOf(at);
    grid.push(start);
    at = end;
    if (grid.length * series > maxCells)
      throw new RpcFault("invalidParams", {
        params: { "data.rollup": ["too many buckets: narrow the window or use longer ones"] },
      });
  }
  return grid;
}

/** One value of an item for each bucket of the grid. */
function aggregate(
  store: ServiceStore,
  { item, aggregation, state, shift }: ItemAggregation,
  { from, before, rollup }: DataQuery,
  grid: readonly number[],
  bucketOf: BucketOf,
  now: number,
): Float64Array {
  const values = new Float64Array(grid.length).fill(Number.NaN);
  const last = grid.at(-1);
  // The window as a whole has no buckets before or after it.
  if (last === undefined || (rollup === "window" && shift !== 0)) return values;
  const starts = shifted(grid, shift, bucketOf);
  // Where values are shifted into the window, points from outside it are needed.
  const first = shift > 0 ? (starts[0] ?? from) : from;
  const end = shift < 0 ? bucketOf(starts.at(-1) ?? last).end : before;
  const blocks = itemBlocks(store, item.id, first, end);
  const byStart = new Map<number, number>();
  switch (aggregation) {
    case "state-seconds":
    case "state-percent":
    case "state-rate": {
      // The grid is bounded already; what is shifted into it may be wide as well.
      const budget = { left: maxStateBuckets + maxCells };
      const times = stateTimes(blocks, bucketOf, { until: Math.min(now, end), maxHold: holdOf(item), budget }).get(
        state,
      );
      for (const [start, micros] of times ?? []) {
        const share = micros / (bucketOf(start).end - start);
        byStart.set(
          start,
          aggregation === "state-seconds" ? micros / 1e6 : aggregation === "state-rate" ? share : share * 100,
        );
      }
      break;
    }
    case "count":
    case "min":
    case "max":
    case "sum":
    case "avg":
    case "first":
    case "last": {
      const aggregates = rollUp(blocks, bucketOf);
      for (const [i, start] of aggregates.times.entries()) byStart.set(start, aggregates[aggregation][i] ?? Number.NaN);
      break;
    }
    default:
      aggregation satisfies never;
  }
  for (const [row, start] of starts.entries()) values[row] = byStart.get(start) ?? Number.NaN;
  return values;
}

/** One column of several; where none has a value it has none. */
function grouped(columns: readonly Float64Array[], aggregation: GroupAggregation, rows: number): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => {
    const values = columns.map((column) => column[row] ?? Number.NaN).filter((value) => !Number.isNaN(value));
    if (values.length === 0) return Number.NaN;
    const sum = values.reduce((total, value) => total + value, 0);
    switch (aggregation) {
      case "count":
        return values.length;
      case "min":
        return Math.min(...values);
      case "max":
        return Math.max(...values);
      case "sum":
        return sum;
      case "avg":
        return sum / values.length;
      default:
        return aggregation satisfies never;
    }
  });
}

/** For each bucket of the grid, the start of the one that is `shift` before it. */
function shifted(grid: readonly number[], shift: number, bucketOf: BucketOf): readonly number[] {
  const outside: number[] = [];
  for (let i = 0, at = (shift > 0 ? grid[0] : grid.at(-1)) ?? 0; i < Math.abs(shift); i++) {
    at = shift > 0 ? bucketOf(at - 1).start : bucketOf(at).end;
    outside.push(at);
  }
  return shift > 0
    ? [...outside.toReversed(), ...grid].slice(0, grid.length)
    : [...grid, ...outside].slice(-grid.length);
}

/** Each missing value replaced by the last one before it, as long as that is not older than the gap. */
function filled(values: Float64Array, grid: readonly number[], gapMicros: number): Float64Array {
  const result = Float64Array.from(values);
  let from = -1;
  for (let row = 0; row < result.length; row++)
    if (!Number.isNaN(values[row])) from = row;
    else if (from >= 0 && (grid[row] ?? 0) - (grid[from] ?? 0) <= gapMicros) result[row] = values[from] ?? Number.NaN;
  return result;
}

/** The rows that have a value. */
function present(key: string, grid: readonly number[], values: Float64Array): Column {
  const rows = [...values.keys()].filter((row) => Number.isFinite(values[row]));
  return { key, times: rows.map((row) => grid[row] ?? 0), values: rows.map((row) => values[row] ?? 0) };
}
