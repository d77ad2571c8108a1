// admin.selectSignals, specification's dialect: signals of an integration, and the items published from them.
import { maxSelected } from "../wire/limits.ts";
import type { Call } from "./call.ts";
import { isRecord } from "./check-frame.ts";
import { anyIntegration } from "./own-integration.ts";
import { signalFields } from "./resource-fields.ts";
import { readResourceQuery, select } from "./resource-query.ts";
import { itemView, signalView } from "./resource-view.ts";
import { Faults } from "./rpc-fault.ts";
import { readFlag } from "./save-view.ts";

export function selectSignals({ params, store }: Call): object {
  const faults = new Faults();
  const integration = anyIntegration(params, faults);
  const query = readResourceQuery(
    params["signals"],
    "signals",
    { fields: signalFields, maxLimit: maxSelected.signals },
    faults,
  );
  const includeItems = readItemsQuery(params["items"], faults);
  faults.throwIfAny();
  const selected = select(store.resources.signals(integration), query);
  const result: { signals?: object; items?: object } = {};
  if (query.include) result.signals = Object.fromEntries(selected.map((signal) => [signal.id, signalView(signal)]));
  if (includeItems) {
    const items = selected.flatMap(({ item }) => (item === null ? [] : (store.resources.item(item) ?? [])));
    result.items = Object.fromEntries(items.map((item) => [item.id, itemView(item)]));
  }
  return result;
}

function readItemsQuery(query: unknown, faults: Faults): boolean {
  if (query === undefined || query === null) return false;
  if (!isRecord(query)) {
    faults.add("items", "must be an object");
    return false;
  }
  return readFlag(query["include"], "items.include", faults);
}
