// integration.saveSignals: creates signals or replaces their attributes; annotations are added to those that are there.
import { isInputId } from "../../core/point.ts";
import { type SignalSaveView, signalSaveView } from "../../wire/signal-view.ts";
import type { MethodCall } from "../call/call.ts";
import { isRecord } from "../call/check-frame.ts";
import { Faults } from "../call/rpc-fault.ts";
import { readFlag, readSaveView } from "../call/save-view.ts";
import { sameAttributes, savedAttributes } from "../store/resource.ts";
import { ownIntegration } from "./own-integration.ts";

export function saveSignals(call: MethodCall): object {
  const { store, now, version } = call;
  const faults = new Faults();
  const integration = ownIntegration(call, faults);
  const createOnly = readFlag(call.params["createOnly"], "createOnly", faults);
  const views = readInputs(call.params, faults);
  faults.throwIfAny();
  const nowMs = Math.floor(now / 1_000);
  const signalsByInput: Record<string, object> = {};
  const summarize = (input: string, id: string, created: boolean, updated: boolean) => {
    signalsByInput[input] = version === "1.1" ? { id, created, updated } : { id, created };
  };
  store.transaction(() => {
    for (const [input, view] of views) {
      const known = store.resources.signalByInput(integration, input);
      if (known && createOnly) continue;
      const attributes = savedAttributes(view, input, known?.attributes);
      if (!known) {
        summarize(input, store.resources.createSignal(integration, input, attributes, nowMs).id, true, false);
        continue;
      }
      const updated = !sameAttributes(known.attributes, attributes);
      if (updated) store.resources.updateSignal({ ...known, attributes, updatedAt: nowMs });
      summarize(input, known.id, false, updated);
    }
  });
  return { signalsByInput };
}

function readInputs(params: MethodCall["params"], faults: Faults): ReadonlyMap<string, SignalSaveView> {
  const views = new Map<string, SignalSaveView>();
  // The current dialect's name; clients send either at any version.
  const given = (key: string) => params[key] !== undefined && params[key] !== null;
  const name = !given("inputs") && given("signalsByInput") ? "signalsByInput" : "inputs";
  const inputs = params[name];
  if (!isRecord(inputs)) {
    faults.add(name, inputs === undefined ? "required" : "must be an object");
    return views;
  }
  for (const [input, value] of Object.entries(inputs)) {
    if (!isInputId(input))
      faults.add(`${name}.${input}`, "must be an Input ID: 1 to 128 characters of a-z A-Z 0-9 - _ : . # + /");
    const view = readSaveView(signalSaveView, value, `${name}.${input}`, faults);
    if (view) views.set(input, view);
  }
  return views;
}
