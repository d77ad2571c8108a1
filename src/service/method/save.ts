// The writing methods: integration.insert, integration.saveSignals, and those of admin that publish and connect signals.
import { isInputId } from "../../core/point.ts";
import { isSince, maxSelected } from "../../wire/method.ts";
import {
  type ItemSaveView,
  itemSaveView,
  resourceIdPattern,
  type SignalSaveView,
  signalSaveView,
} from "../../wire/signal-view.ts";
import { checkFrame, inputIdFault } from "../call/check-frame.ts";
import {
  anyIntegration,
  emptyMap,
  isGiven,
  type Members,
  type MethodCall,
  ownIntegration,
  readFlag,
  readSaveView,
  requiredMembers,
  type Saved,
} from "../call/params.ts";
import { type Faults, RpcFault } from "../call/rpc-fault.ts";
import { readSignalQuery } from "../query/resource-query.ts";
import { type Signal, sameAttributes, savedAttributes } from "../store/resource-store.ts";
import { readAnswerFormat, signalResource } from "./resource-view.ts";
import { itemsOf } from "./select.ts";

/** Stores the points of a frame, and creates signals for new Input IDs. */
export function insert(call: MethodCall): object {
  const { store, params, faults } = call;
  const integration = ownIntegration(call, faults);
  const frame = checkFrame(params["data"], "data", faults);
  faults.throwIfAny();
  const nowMs = Math.floor(call.now / 1_000);
  const signalsByInput = emptyMap<object>();
  const refused = call.refusedInputs.filter((input) => frame.has(input));
  store.transaction(() => {
    for (const [input, pointsOf] of frame) {
      if (refused.includes(input)) continue;
      const known = store.resources.signalByInput(integration, input);
      const attributes = () => savedAttributes(signalSaveView.parse({}), input, undefined);
      const { id, number } = known ?? store.resources.createSignal(integration, input, attributes(), nowMs);
      store.points.write(number, pointsOf());
      // Without `updated`: clients reject a summary with unknown members.
      signalsByInput[input] = { id, created: known === undefined };
    }
  });
  if (refused.length > 0)
    throw new RpcFault("partialFailure", {
      partialResult: { signalsByInput },
      invalidResources: refused.map((id) => ({ id, type: "signals", message: "refused on request" })),
    });
  return { signalsByInput };
}

/** Creates signals or replaces their attributes. Annotations are merged. */
export function saveSignals(call: MethodCall): object {
  const { store, params, faults } = call;
  const integration = ownIntegration(call, faults);
  const createOnly = readFlag(params["createOnly"], "createOnly", faults);
  const views = readInputs(params, faults);
  refuseResources(call, faults);
  faults.throwIfAny();
  const nowMs = Math.floor(call.now / 1_000);
  const signalsByInput = emptyMap<object>();
  store.transaction(() => {
    for (const [input, view] of views) {
      const known = store.resources.signalByInput(integration, input);
      if (known && createOnly) continue;
      const attributes = savedAttributes(view, input, known?.attributes);
      const updated = known !== undefined && !sameAttributes(known.attributes, attributes);
      if (updated) store.resources.updateSignal({ ...known, attributes, updatedAt: nowMs });
      const { id } = known ?? store.resources.createSignal(integration, input, attributes, nowMs);
      signalsByInput[input] = summaryOf(call, id, known === undefined, updated);
    }
  });
  return { signalsByInput };
}

function readInputs(params: Members, faults: Faults): ReadonlyMap<string, Saved<SignalSaveView>> {
  const views = new Map<string, Saved<SignalSaveView>>();
  // The current dialect's name; clients send either name with any version.
  const name = !isGiven(params["inputs"]) && isGiven(params["signalsByInput"]) ? "signalsByInput" : "inputs";
  for (const [input, value] of Object.entries(requiredMembers(params[name], name, faults) ?? {})) {
    const path = `${name}.${input}`;
    if (!isInputId(input)) faults.add(path, inputIdFault);
    const view = readSaveView(signalSaveView, value, path, faults);
    if (view) views.set(input, view);
  }
  return views;
}

/** Creates or updates the item of a signal. Items keep their IDs. */
export function publishSignals(call: MethodCall): object {
  const { store, params, faults } = call;
  const integration = anyIntegration(params, faults);
  const createOnly = readFlag(params["createOnly"], "createOnly", faults);
  const publications = readItems(call, integration, faults);
  refuseResources(call, faults);
  faults.throwIfAny();
  const nowMs = Math.floor(call.now / 1_000);
  const itemsBySignal: Record<string, object> = {};
  store.transaction(() => {
    for (const { signal, view } of publications) {
      const known = signal.item === null ? undefined : store.resources.item(signal.item);
      const attributes = savedAttributes(view, view.name, known?.attributes);
      const visible = view.visible ?? false;
      const changed = !(visible === known?.visible && sameAttributes(known.attributes, attributes));
      const updated = known !== undefined && !createOnly && changed;
      if (updated) store.resources.updateItem({ ...known, attributes, visible, updatedAt: nowMs });
      const { id } = known ?? store.resources.createItem(attributes, visible, nowMs);
      if (!known) store.resources.updateSignal({ ...signal, item: id, updatedAt: nowMs });
      itemsBySignal[signal.id] = summaryOf(call, id, known === undefined, updated);
    }
  });
  return { itemsBySignal };
}

interface Publication {
  readonly signal: Signal;
  readonly view: Saved<ItemSaveView>;
}

function readItems({ params, store }: MethodCall, integration: string, faults: Faults): readonly Publication[] {
  const items = requiredMembers(params["itemsBySignal"], "itemsBySignal", faults) ?? {};
  return Object.entries(items).flatMap(([id, value]) => {
    const path = `itemsBySignal.${id}`;
    const signal = store.resources.signal(id);
    if (!resourceIdPattern.test(id)) faults.add(path, "must be a Signal ID: 20 characters of a-v and 0-9");
    else if (signal?.integration !== integration) faults.add(path, "no such signal in this integration");
    const view = readSaveView(itemSaveView, value, path, faults);
    return signal && view ? [{ signal, view }] : [];
  });
}

/** From 1.2 on, a save may request the created resources. The format is not public, so such requests are refused. */
function refuseResources({ params, version }: MethodCall, faults: Faults): void {
  if (!isSince(version, "1.2beta1")) return;
  for (const name of ["result", "include"])
    if (isGiven(params[name]) && !(Array.isArray(params[name]) && params[name].length === 0))
      faults.add(name, "is not supported here: the answer is always a summary of each save");
}

function summaryOf({ version }: MethodCall, id: string, created: boolean, updated: boolean): object {
  return isSince(version, "1.1") ? { id, created, updated } : { id, created };
}

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
