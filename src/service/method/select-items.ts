// platform.selectItems: metadata of items, in the specification's dialect also their data.

import { defaultLimit, maxSelected } from "../../wire/method.ts";
import { type DataFrame, rollupColumns } from "../../wire/results.ts";
import type { MethodCall } from "../call/call.ts";
import { isRecord } from "../call/check-frame.ts";
import { Faults } from "../call/rpc-fault.ts";
import { bucketsOfQuery, type DataQuery, readSpecifiedDataQuery } from "../query/data-query.ts";
import { buildFrame, type Column } from "../query/frame-builder.ts";
import { itemFields } from "../query/resource-fields.ts";
import { readResourceQuery, select } from "../query/resource-query.ts";
import { rollUp } from "../query/rollup.ts";
import { itemBlocks, joinedBlocks } from "../store/item-data.ts";
import type { ServiceStore } from "../store/store.ts";
import { selectedItemView } from "./resource-view.ts";
import { currentDefaultLimit, readFormat, readInclude, selection, speaksSpecified } from "./selection.ts";
import { itemResource } from "./typed-resource.ts";

export function selectItems(call: MethodCall): object {
  const { data } = call.params;
  const asksForData = isRecord(data) && data["include"] !== undefined && data["include"] !== null;
  return speaksSpecified(call, ["signals", "items"]) || asksForData ? specified(call) : current(call);
}

function specified({ params, store, now, version }: MethodCall): object {
  const faults = new Faults();
  const data = readSpecifiedDataQuery(params["data"], now, version === "1.1", faults);
  const query = readResourceQuery(
    params["items"],
    "items",
    { fields: itemFields, defaultLimit, maxLimit: data.include ? maxSelected.itemsWithData : maxSelected.items },
    faults,
  );
  faults.throwIfAny();
  const { resources: selected } = select(store.resources.items(), query);
  const result: { items?: object; data?: DataFrame } = {};
  if (query.include) result.items = Object.fromEntries(selected.map((item) => [item.id, selectedItemView(item)]));
  if (data.include) {
    const columns = selected.flatMap(({ id }) => columnsOf(store, id, data));
    result.data = buildFrame(columns);
  }
  return result;
}

function current({ params, store }: MethodCall): object {
  const faults = new Faults();
  const bounds = { fields: itemFields, defaultLimit: currentDefaultLimit, maxLimit: maxSelected.items };
  const query = readResourceQuery(params["query"], "query", bounds, faults);
  // There is nothing to include yet; clients send lists all the same.
  readInclude(params["include"], faults);
  const format = readFormat(params["format"], { dataAsArray: true, groupIncludedByType: false }, faults);
  faults.throwIfAny();
  const { resources, total } = select(store.resources.items(), query);
  return selection({ total, format, resources: resources.map(itemResource), included: undefined });
}

/** One column for an item, or with a rollup one for each aggregate. */
function columnsOf(store: ServiceStore, item: string, query: DataQuery): Column[] {
  const blocks = itemBlocks(store, item, query.from, query.before);
  const bucketOf = bucketsOfQuery(query);
  if (!bucketOf) return [{ key: item, ...joinedBlocks(blocks) }];
  const aggregates = rollUp(blocks, bucketOf);
  return rollupColumns.map((name) => ({ key: `${item}_${name}`, times: aggregates.times, values: aggregates[name] }));
}
