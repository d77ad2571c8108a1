// admin.selectSignals and platform.selectItems. At 1.1, params of the specification select its dialect.
import { defaultLimit, isSince, maxSelected } from "../../wire/method.ts";
import type { DataFrame } from "../../wire/results.ts";
import { anyIntegration, isGiven, isRecord, type MethodCall, membersOf, readFlag } from "../call/params.ts";
import { readSpecifiedDataQuery } from "../query/data-query.ts";
import { itemFields, signalFields } from "../query/filter.ts";
import { buildFrame, CellBudget } from "../query/frame-builder.ts";
import { currentDefaultLimit, readResourceQuery, readSignalQuery } from "../query/resource-query.ts";
import type { ItemRecord, Signal } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { lastOf, numericColumns } from "./data-frame.ts";
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
    result.data = buildFrame(columns.map((column) => lastOf(column, data.last)));
  }
  return result;
}
