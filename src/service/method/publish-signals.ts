// admin.publishSignals: makes an item of a signal, or updates the item that was made of it. Items keep their IDs.
import { type ItemSaveView, itemSaveView, resourceIdPattern } from "../../wire/signal-view.ts";
import type { MethodCall } from "../call/call.ts";
import { isRecord } from "../call/check-frame.ts";
import { Faults } from "../call/rpc-fault.ts";
import { readFlag, readSaveView } from "../call/save-view.ts";
import { type Signal, sameAttributes, savedAttributes } from "../store/resource.ts";
import { anyIntegration } from "./own-integration.ts";

interface Publication {
  readonly signal: Signal;
  readonly view: ItemSaveView;
}

export function publishSignals(call: MethodCall): object {
  const { store, now, version, params } = call;
  const faults = new Faults();
  const integration = anyIntegration(params, faults);
  const createOnly = readFlag(params["createOnly"], "createOnly", faults);
  const publications = readItems(call, integration, faults);
  faults.throwIfAny();
  const nowMs = Math.floor(now / 1_000);
  const itemsBySignal: Record<string, object> = {};
  store.transaction(() => {
    for (const { signal, view } of publications) {
      const known = signal.item === null ? undefined : store.resources.item(signal.item);
      const attributes = savedAttributes(view, view.name, known?.attributes);
      const visible = view.visible ?? false;
      let id: string;
      let updated = false;
      if (known) {
        id = known.id;
        updated = !createOnly && !(visible === known.visible && sameAttributes(known.attributes, attributes));
        if (updated) store.resources.updateItem({ ...known, attributes, visible, updatedAt: nowMs });
      } else {
        id = store.resources.createItem(attributes, visible, nowMs).id;
        store.resources.updateSignal({ ...signal, item: id, updatedAt: nowMs });
      }
      const created = known === undefined;
      itemsBySignal[signal.id] = version === "1.1" ? { id, created, updated } : { id, created };
    }
  });
  return { itemsBySignal };
}

function readItems({ params, store }: MethodCall, integration: string, faults: Faults): readonly Publication[] {
  const items = params["itemsBySignal"];
  if (!isRecord(items)) {
    faults.add("itemsBySignal", items === undefined ? "required" : "must be an object");
    return [];
  }
  const publications: Publication[] = [];
  for (const [id, value] of Object.entries(items)) {
    const path = `itemsBySignal.${id}`;
    const signal = store.resources.signal(id);
    if (!resourceIdPattern.test(id)) faults.add(path, "must be a Signal ID: 20 characters of a-v and 0-9");
    else if (signal?.integration !== integration) faults.add(path, "no such signal in this integration");
    const view = readSaveView(itemSaveView, value, path, faults);
    if (signal && view) publications.push({ signal, view });
  }
  return publications;
}
