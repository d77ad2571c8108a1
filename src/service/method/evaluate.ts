// platform.evaluate: aggregates of items, and formulas over them, in common buckets.
import type { MethodCall } from "../call/params.ts";
import { oneBucket } from "../query/buckets.ts";
import { readCurrentDataQuery } from "../query/data-query.ts";
import { computeFormula, sizeOf } from "../query/formula.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { lastOf } from "./data-frame.ts";
import { readEvaluation } from "./evaluate-params.ts";
import { aggregateGroup, aggregateItem, gapfilledItem, gridOf, lastOfWindow } from "./evaluate-series.ts";
import { readAnswerFormat } from "./resource-view.ts";

export function evaluate(call: MethodCall): object {
  const { params, store, now, faults } = call;
  const { items, groups, calculations, aliases } = readEvaluation(call);
  const query = readCurrentDataQuery(params["data"], now, faults);
  const answers = readAnswerFormat(call, "data");
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
  const seconds = Float64Array.from(starts, (start) => start / 1e6);
  const widths = Float64Array.from(starts, (start) => (bucketOf(start).end - start) / 1e6);
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
      .map((alias) => lastOf(present(alias, starts, column(alias)), query.last)),
  );
  const included = new Map(items.map(({ item }) => [item.id, item]));
  return answers.ofFrame(frame, -1, [...included.values()]);
}

/** Only the rows with a value. */
function present(key: string, starts: readonly number[], values: Float64Array): Column {
  const rows = [...values.keys()].filter((row) => Number.isFinite(values[row]));
  return { key, times: rows.map((row) => starts[row]!), values: rows.map((row) => values[row]!) };
}
