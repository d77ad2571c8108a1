// platform.dataFrame: data of items, in the current dialect.
import { defaultLimit, maxSelected } from "../../wire/method.ts";
import { rollupColumns } from "../../wire/results.ts";
import type { MethodCall } from "../call/params.ts";
import { type DataQuery, readCurrentDataQuery } from "../query/data-query.ts";
import { outsideSpans, spansOf } from "../query/edge-points.ts";
import { itemFields } from "../query/filter.ts";
import { buildFrame, CellBudget, type Column } from "../query/frame-builder.ts";
import { readResourceQuery } from "../query/resource-query.ts";
import { maxStateBuckets, rollUp, type StateBudget, stateTimes } from "../query/rollup.ts";
import { type BlockColumns, joinedBlocks } from "../store/point-block.ts";
import type { ItemRecord } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { readAnswerFormat } from "./resource-view.ts";

export function selectDataFrame(call: MethodCall): object {
  const { params, store, now, faults } = call;
  const bounds = { fields: itemFields, defaultLimit, maxLimit: maxSelected.itemsWithData };
  const query = readResourceQuery(params["query"], "query", bounds, faults);
  const data = readCurrentDataQuery(params["data"], now, faults);
  const answers = readAnswerFormat(call, "data");
  faults.throwIfAny();
  const { resources, total } = query.select(store.resources.items());
  const budget = { left: maxStateBuckets };
  const cells = new CellBudget();
  const columns = resources.flatMap((item) =>
    data.bucketOf && item.attributes.type === "enum"
      ? stateColumns(store, item, data, now, budget)
      : numericColumns(store, item.id, data, cells),
  );
  const frame = buildFrame(columns.map((column) => lastOf(column, data.last)));
  return answers.ofFrame(frame, total, resources);
}

export function lastOf(column: Column, last: number | undefined): Column {
  if (last === undefined || column.times.length <= last) return column;
  const { key, times, values } = column;
  return { key, times: Array.from(times).slice(-last), values: Array.from(values).slice(-last) };
}

/** Whether a query includes this series of an item. */
function isWanted({ series }: DataQuery, key: string, item: string): boolean {
  return series === undefined || series.has(key) || series.has(item);
}

/** One column for an item; with a rollup, one for each aggregate. */
export function numericColumns(store: ServiceStore, item: string, query: DataQuery, cells: CellBudget): Column[] {
  const blocks = blocksOf(store, item, query);
  if (!query.bucketOf)
    return isWanted(query, item, item) ? [{ key: item, ...joinedBlocks(cells.counted(blocks)) }] : [];
  const aggregates = rollUp(blocks, query.bucketOf);
  const columns = rollupColumns
    .map((name) => ({ key: `${item}_${name}`, times: aggregates.times, values: aggregates[name] }))
    .filter(({ key }) => isWanted(query, key, item));
  cells.take(aggregates.times.length * columns.length);
  return columns;
}

function* blocksOf(store: ServiceStore, item: string, query: DataQuery): Generator<BlockColumns> {
  for (const { from, before } of spansOf(store, item, query)) yield* store.blocksOf(item, from, before);
}

/** One column for each state, in seconds. */
function stateColumns(store: ServiceStore, item: ItemRecord, query: DataQuery, now: number, budget: StateBudget) {
  const { bucketOf } = query;
  if (!bucketOf) return [];
  const { earlier, later } = outsideSpans(store, [item.id], query);
  const spans = [earlier, query, later].filter((span) => span !== undefined);
  return [...stateTimes(store, item, spans, { bucketOf, now, budget })]
    .toSorted(([a], [b]) => a - b)
    .map(([state, times]) => ({
      key: `${item.id}_${state}`,
      times: [...times.keys()],
      values: Array.from(times.values(), (micros) => micros / 1e6),
    }))
    .filter(({ key }) => isWanted(query, key, item.id));
}
