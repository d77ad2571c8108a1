// admin.selectSignals: signals of an integration, and the items published from them.
import { defaultLimit, maxSelected } from "../../wire/method.ts";
import type { MethodCall } from "../call/call.ts";
import { isRecord } from "../call/check-frame.ts";
import { Faults } from "../call/rpc-fault.ts";
import { readFlag } from "../call/save-view.ts";
import { signalFields } from "../query/resource-fields.ts";
import { readResourceQuery, select } from "../query/resource-query.ts";
import type { ItemRecord, Signal } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";
import { anyIntegration } from "./own-integration.ts";
import { selectedItemView, selectedSignalView } from "./resource-view.ts";
import { currentDefaultLimit, readFormat, readInclude, selection, speaksSpecified } from "./selection.ts";
import { itemResource, signalResource } from "./typed-resource.ts";

export function selectSignals(call: MethodCall): object {
  return speaksSpecified(call, ["signals", "items"]) ? specified(call) : current(call);
}

function specified({ params, store }: MethodCall): object {
  const faults = new Faults();
  const integration = anyIntegration(params, faults);
  const query = readResourceQuery(
    params["signals"],
    "signals",
    { fields: signalFields, defaultLimit, maxLimit: maxSelected.signals },
    faults,
  );
  const includeItems = readItemsQuery(params["items"], faults);
  faults.throwIfAny();
  const { resources: selected } = select(store.resources.signals(integration), query);
  const result: { signals?: object; items?: object } = {};
  if (query.include)
    result.signals = Object.fromEntries(selected.map((signal) => [signal.id, selectedSignalView(signal)]));
  if (includeItems) {
    result.items = Object.fromEntries(itemsOf(selected, store).map((item) => [item.id, selectedItemView(item)]));
  }
  return result;
}

function current({ params, store }: MethodCall): object {
  const faults = new Faults();
  const integration = anyIntegration(params, faults);
  const bounds = { fields: signalFields, defaultLimit: currentDefaultLimit, maxLimit: maxSelected.signals };
  const query = readResourceQuery(params["query"], "query", bounds, faults);
  const includesItems = readInclude(params["include"], faults);
  const format = readFormat(params["format"], { dataAsArray: true, groupIncludedByType: false }, faults);
  faults.throwIfAny();
  const { resources, total } = select(store.resources.signals(integration), query);
  return selection({
    total,
    format,
    resources: resources.map(signalResource),
    included: includesItems ? itemsOf(resources, store).map(itemResource) : undefined,
  });
}

/** Each item once, by creation. */
function itemsOf(signals: readonly Signal[], store: ServiceStore): readonly ItemRecord[] {
  const ids = new Set(signals.flatMap(({ item }) => item ?? []));
  return [...ids].toSorted().flatMap((id) => store.resources.item(id) ?? []);
}

function readItemsQuery(query: unknown, faults: Faults): boolean {
  if (query === undefined || query === null) return false;
  if (!isRecord(query)) {
    faults.add("items", "must be an object");
    return false;
  }
  return readFlag(query["include"], "items.include", faults);
}
