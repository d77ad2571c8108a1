// platform.selectItems, specification's dialect: metadata and data of items.
import type { DataFrame } from "../wire/data-frame.ts";
import { maxSelected } from "../wire/limits.ts";
import { rollupColumns } from "../wire/select-items.ts";
import type { Call } from "./call.ts";
import type { DataWindow } from "./data-window.ts";
import { readDataWindow } from "./data-window.ts";
import type { Column } from "./frame-builder.ts";
import { buildFrame } from "./frame-builder.ts";
import { itemBlocks, joined } from "./item-data.ts";
import { itemFields } from "./resource-fields.ts";
import { readResourceQuery, select } from "./resource-query.ts";
import { itemView } from "./resource-view.ts";
import { bucketsOf, oneBucket, rollUp } from "./rollup.ts";
import { Faults } from "./rpc-fault.ts";
import type { Store } from "./store.ts";

export function selectItems({ params, store, now }: Call): object {
  const faults = new Faults();
  const window = readDataWindow(params["data"], now, faults);
  const query = readResourceQuery(
    params["items"],
    "items",
    { fields: itemFields, maxLimit: window.include ? maxSelected.itemsWithData : maxSelected.items },
    faults,
  );
  faults.throwIfAny();
  const selected = select(store.resources.items(), query);
  const result: { items?: object; data?: DataFrame } = {};
  if (query.include) result.items = Object.fromEntries(selected.map((item) => [item.id, itemView(item)]));
  if (window.include) {
    const columns = selected.flatMap(({ id }) => columnsOf(store, id, window));
    result.data = buildFrame(columns);
  }
  return result;
}

/** One column for an item, or with a rollup one for each aggregate. */
export function columnsOf(store: Store, item: string, { from, before, rollup }: DataWindow): Column[] {
  const blocks = itemBlocks(store, item, from, before);
  if (rollup === null) return [{ key: item, ...joined(blocks) }];
  const buckets = rollUp(blocks, rollup === "window" ? oneBucket(from) : bucketsOf(rollup.micros));
  return rollupColumns.map((name) => ({ key: `${item}_${name}`, times: buckets.times, values: buckets[name] }));
}
