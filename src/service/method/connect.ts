// admin.connectSignals and admin.disconnectSignals: set which item shows a signal's data. An item may show several.
import { maxSelected } from "../../wire/method.ts";
import { resourceIdPattern } from "../../wire/signal-view.ts";
import { anyIntegration, type MethodCall, readFlag } from "../call/params.ts";
import { readSignalQuery } from "../query/resource-query.ts";
import { readAnswerFormat, signalResource } from "./resource-view.ts";
import { itemsOf } from "./select.ts";

/** Connects the signals of a query to an item. A signal of another item moves to this one. */
export function connectSignals(call: MethodCall): object {
  const { faults } = call;
  const { item } = call.params;
  if (typeof item !== "string" || !resourceIdPattern.test(item))
    faults.add("item", item === undefined ? "required" : "must be an Item ID: 20 characters of a-v and 0-9");
  else if (!call.store.resources.item(item)) faults.add("item", "no such item");
  return relate(call, String(item));
}

/** Disconnects the signals of a query from their items. The items remain. */
export function disconnectSignals(call: MethodCall): object {
  return relate(call, null);
}

function relate(call: MethodCall, item: string | null): object {
  const { params, store, faults } = call;
  const integration = anyIntegration(params, faults);
  // Without a limit, the query means all matching signals, not a page.
  const query = readSignalQuery(params, faults, maxSelected.signals);
  const dryRun = readFlag(params["dryRun"], "dryRun", faults);
  const answers = readAnswerFormat(call, "resources");
  faults.throwIfAny();
  const updatedAt = Math.floor(call.now / 1_000);
  const { resources, total } = query.select(store.resources.signals(integration));
  if (total > maxSelected.signals && !query.isLimited)
    faults.add(
      "query",
      `matches ${total} signals, a call can take ${maxSelected.signals}: narrow the filter or set a limit`,
    );
  faults.throwIfAny();
  const affected = resources.map((signal) => (signal.item === item ? signal : { ...signal, item, updatedAt }));
  const changed = affected.filter((signal, index) => signal !== resources[index]);
  if (!dryRun) store.transaction(() => changed.forEach((signal) => store.resources.updateSignal(signal)));
  return answers.ofResources(affected, signalResource, total, itemsOf(affected, store));
}
