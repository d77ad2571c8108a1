// platform.dataFrame: data of items, in the current dialect.
import { defaultLimit, maxSelected } from "../../wire/method.ts";
import { rollupColumns } from "../../wire/results.ts";
import type { MethodCall } from "../call/call.ts";
import { Faults } from "../call/rpc-fault.ts";
import { bucketsOfQuery, type DataQuery, readCurrentDataQuery } from "../query/data-query.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { itemFields } from "../query/resource-fields.ts";
import { readResourceQuery, select } from "../query/resource-query.ts";
import { rollUp } from "../query/rollup.ts";
import { maxStateBuckets, type StateBudget, stateTimes } from "../query/state-times.ts";
import { holdOf, itemBlocks, joinedBlocks } from "../store/item-data.ts";
import type { ItemRecord } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { includedMember, readFormat, readInclude } from "./selection.ts";
import { itemResource } from "./typed-resource.ts";

export function selectDataFrame({ params, store, now }: MethodCall): object {
  const faults = new Faults();
  const bounds = { fields: itemFields, defaultLimit, maxLimit: maxSelected.itemsWithData };
  const query = readResourceQuery(params["query"], "query", bounds, faults);
  const data = readCurrentDataQuery(params["data"], now, faults);
  const includesItems = readInclude(params["include"], faults);
  const format = readFormat(params["format"], { dataAsArray: false, groupIncludedByType: false }, faults);
  faults.throwIfAny();
  const { resources, total } = select(store.resources.items(), query);
  const budget = { left: maxStateBuckets };
  const columns = resources
    .flatMap((item) => columnsOf(store, item, data, now, budget))
    .map((column) => lastOf(column, data.last));
  const frame = buildFrame(columns);
  return {
    meta: { total, format },
    data: format.dataAsArray ? [frame] : frame,
    ...includedMember(includesItems ? resources.map(itemResource) : undefined, format),
  };
}

/** The last so many points of a column. */
export function lastOf(column: Column, last: number | undefined): Column {
  if (last === undefined || column.times.length <= last) return column;
  const from = column.times.length - last;
  return {
    key: column.key,
    times: Array.from(column.times).slice(from),
    values: Array.from(column.values).slice(from),
  };
}

function columnsOf(
  store: ServiceStore,
  item: ItemRecord,
  query: DataQuery,
  now: number,
  budget: StateBudget,
): Column[] {
  const wanted = (key: string) => query.series === undefined || query.series.has(key) || query.series.has(item.id);
  const blocks = () => itemBlocks(store, item.id, query.from, query.before);
  const bucketOf = bucketsOfQuery(query);
  if (!bucketOf) return wanted(item.id) ? [{ key: item.id, ...joinedBlocks(blocks()) }] : [];
  if (item.attributes.type === "enum") {
    const states = stateTimes(blocks(), bucketOf, {
      until: Math.min(query.before, now),
      maxHold: holdOf(item),
      budget,
    });
    return [...states]
      .toSorted(([a], [b]) => a - b)
      .map(([state, times]) => ({
        key: `${item.id}_${state}`,
        times: [...times.keys()],
        values: Array.from(times.values(), (micros) => micros / 1e6),
      }))
      .filter(({ key }) => wanted(key));
  }
  const aggregates = rollUp(blocks(), bucketOf);
  return rollupColumns
    .map((name) => ({ key: `${item.id}_${name}`, times: aggregates.times, values: aggregates[name] }))
    .filter(({ key }) => wanted(key));
}
