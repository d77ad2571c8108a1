// admin.selectSignals, platform.selectItems, and platform.dataFrame of the current dialect. At 1.1, params of the
// specification select its dialect.
import { defaultLimit, isSince, maxSelected } from "../../wire/method.ts";
import { type DataFrame, rollupColumns } from "../../wire/results.ts";
import { anyIntegration, isGiven, isRecord, type MethodCall, membersOf, readFlag } from "../call/params.ts";
import { type DataQuery, readCurrentDataQuery, readSpecifiedDataQuery } from "../query/data-query.ts";
import { outsideSpans, spansOf } from "../query/edge-points.ts";
import { itemFields, signalFields } from "../query/filter.ts";
import { buildFrame, CellBudget, type Column } from "../query/frame-builder.ts";
import { currentDefaultLimit, readResourceQuery, readSignalQuery } from "../query/resource-query.ts";
import { maxStateBuckets, rollUp, type StateBudget, stateTimes } from "../query/rollup.ts";
import type { BlockColumns } from "../store/block-format.ts";
import { joinedBlocks } from "../store/point-run.ts";
import type { ItemRecord, Signal } from "../store/resource-store.ts";
import type { ServiceStore } from "../store/store.ts";
import {
  byId,
  itemResource,
  readAnswerFormat,
  selectedItemView,
  selectedSignalView,
  signalResource,
} from "./resource-view.ts";

function speaksSpecified({ version, params }: MethodCall): boolean {
  return !isSince(version, "1.1") || isGiven(params["signals"]) || isGiven(params["items"]);
}

export function selectSignals(call: MethodCall): object {
  const { params, store, faults } = call;
  const integration = anyIntegration(params, faults);
  if (!speaksSpecified(call)) {
    const query = readSignalQuery(params, faults);
    const answers = readAnswerFormat(call, "resources");
    faults.throwIfAny();
    const { resources, total } = query.select(store.resources.signals(integration));
    return answers.ofResources(resources, signalResource, total, itemsOf(resources, store));
  }
  const bounds = { fields: signalFields, defaultLimit, maxLimit: maxSelected.signals };
  const query = readResourceQuery(params["signals"], "signals", bounds, faults);
  const items = membersOf(params["items"], "items", faults);
  const includesItems = readFlag(items["include"], "items.include", faults);
  faults.throwIfAny();
  const { resources } = query.select(store.resources.signals(integration));
  return {
    ...(query.include && { signals: byId(resources, selectedSignalView) }),
    ...(includesItems && { items: byId(itemsOf(resources, store), selectedItemView) }),
  };
}

/** The distinct items of these signals, by creation. */
export function itemsOf(signals: readonly Signal[], store: ServiceStore): readonly ItemRecord[] {
  const ids = new Set(signals.flatMap(({ item }) => item ?? []));
  return [...ids].toSorted().flatMap((id) => store.resources.item(id) ?? []);
}

export function selectItems(call: MethodCall): object {
  const { params, store, now, version, faults } = call;
  const bounds = { fields: itemFields, defaultLimit: currentDefaultLimit, maxLimit: maxSelected.items };
  const asksForData = isRecord(params["data"]) && isGiven(params["data"]["include"]);
  if (!speaksSpecified(call) && !asksForData) {
    const query = readResourceQuery(params["query"], "query", bounds, faults);
    const answers = readAnswerFormat(call, "resources");
    faults.throwIfAny();
    const { resources, total } = query.select(store.resources.items());
    // Nothing can be included yet, but clients send lists.
    return answers.ofResources(resources, itemResource, total, []);
  }
  const data = readSpecifiedDataQuery(params["data"], now, isSince(version, "1.1"), faults);
  const maxLimit = data.include ? maxSelected.itemsWithData : maxSelected.items;
  const query = readResourceQuery(params["items"], "items", { ...bounds, defaultLimit, maxLimit }, faults);
  faults.throwIfAny();
  const { resources } = query.select(store.resources.items());
  const result: { items?: object; data?: DataFrame } = {};
  if (query.include) result.items = byId(resources, selectedItemView);
  if (data.include) {
    const cells = new CellBudget();
    const columns = resources.flatMap(({ id }) => numericColumns(store, id, data, cells));
    result.data = buildFrame(columns, data.last);
  }
  return result;
}

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
  return answers.ofFrame(buildFrame(columns, data.last), total, resources);
}

/** Whether a query includes this series of an item. */
function isWanted({ series }: DataQuery, key: string, item: string): boolean {
  return series === undefined || series.has(key) || series.has(item);
}

/** One column for an item; with a rollup, one for each aggregate. */
function numericColumns(store: ServiceStore, item: string, query: DataQuery, cells: CellBudget): Column[] {
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
