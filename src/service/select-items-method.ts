// platform.selectItems, specification's dialect: metadata and data of items.
import type { DataFrame } from "../wire/data-frame.ts";
import { maxSelected } from "../wire/limits.ts";
import { rollupColumns } from "../wire/select-items.ts";
import type { Call } from "./call.ts";
import type { DataQuery } from "./data-query.ts";
import { bucketsOfQuery, readSpecifiedDataQuery } from "./data-query.ts";
import type { Column } from "./frame-builder.ts";
import { buildFrame } from "./frame-builder.ts";
import { itemBlocks, joined } from "./item-data.ts";
import { itemFields } from "./resource-fields.ts";
import { readResourceQuery, select } from "./resource-query.ts";
import { itemView } from "./resource-view.ts";
import { rollUp } from "./rollup.ts";
import { Faults } from "./rpc-fault.ts";
import type { Store } from "./store.ts";

export function selectItems({ params, store, now }: Call): object {
  const faults = new Faults();
  const data = readSpecifiedDataQuery(params["data"], now, faults);
  const query = readResourceQuery(
    params["items"],
    "items",
    { fields: itemFields, maxLimit: data.include ? maxSelected.itemsWithData : maxSelected.items },
    faults,
  );
  faults.throwIfAny();
  const selected = select(store.resources.items(), query);
  const result: { items?: object; data?: DataFrame } = {};
  if (query.include) result.items = Object.fromEntries(selected.map((item) => [item.id, itemView(item)]));
  if (data.include) {
    const columns = selected.flatMap(({ id }) => columnsOf(store, id, data));
    result.data = buildFrame(columns);
  }
  return result;
}

/** One column for an item, or with a rollup one for each aggregate. */
export function columnsOf(store: Store, item: string, query: DataQuery): Column[] {
  const blocks = itemBlocks(store, item, query.from, query.before);
  const bucketOf = bucketsOfQuery(query);
  if (!bucketOf) return [{ key: item, ...joined(blocks) }];
  const aggregates = rollUp(blocks, bucketOf);
  return rollupColumns.map((name) => ({ key: `${item}_${name}`, times: aggregates.times, values: aggregates[name] }));
}
