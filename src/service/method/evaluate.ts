// platform.evaluate: aggregates of items, and formulas over them, on one grid of buckets.
import type { MethodCall } from "../call/params.ts";
import { oneBucket } from "../query/buckets.ts";
import { readCurrentDataQuery } from "../query/data-query.ts";
import { computeFormula, sizeOf } from "../query/formula.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { lastOf } from "./data-frame.ts";
import { readCalculations, readGroups, readItemAggregations } from "./evaluate-params.ts";
import { aggregateGroup, aggregateItem, gapfilledItem, gridOf, lastOfWindow } from "./evaluate-series.ts";
import { answerOf, readAnswerOptions } from "./resource-view.ts";

export function evaluate(call: MethodCall): object {
  const { params, store, now, faults } = call;
  const aliases = new Set<string>();
  const items = readItemAggregations(params["items"], store, aliases, faults);
  const groups = readGroups(params["groups"], store, aliases, faults);
  const calculations = readCalculations(params["calculations"], items, aliases, faults);
  const query = readCurrentDataQuery(params["data"], now, faults);
  const options = readAnswerOptions(call, "data", faults);
  if (!query.bucketOf) faults.add("data.rollup", "required");
  faults.throwIfAny();
  const bucketOf = query.bucketOf ?? oneBucket({ start: query.from, end: query.before });
  const members = [...items, ...groups.flatMap((group) => group.items)];
  const operations = calculations.reduce((sum, { formula }) => sum + sizeOf(formula), 0);
  const whole = { store, query, bucketOf, now };
  const source = calculations.length > 0 ? whole : { ...whole, query: lastOfWindow(whole, members) };
  const grid = gridOf(source, members, aliases.size, operations);
  const { starts } = grid;
  const columns = new Map(items.map((item) => [item.alias, aggregateItem(grid, item)]));
  for (const group of groups) columns.set(group.alias, aggregateGroup(grid, group));
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
  const gapfilled = (alias: string) => {
    const item = items.find((candidate) => candidate.alias === alias);
    return item ? gapfilledItem(grid, item, column(alias)) : column(alias);
  };
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

/** The rows that have a value. */
function present(key: string, starts: readonly number[], values: Float64Array): Column {
  const rows = [...values.keys()].filter((row) => Number.isFinite(values[row]));
  return { key, times: rows.map((row) => starts[row]!), values: rows.map((row) => values[row]!) };
}
