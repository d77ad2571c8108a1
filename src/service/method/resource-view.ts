// Signals and items as the specification's dialect shows them.
import type { ItemSelectView, SignalSelectView } from "../../wire/signal-view.ts";
import { contentHash, type ItemRecord, type Signal } from "../store/resource.ts";

export function selectedSignalView(signal: Signal): SignalSelectView {
  return { ...selectedItemView(signal), inputId: signal.input, item: signal.item };
}

export function selectedItemView({
  id,
  attributes,
  createdAt,
  updatedAt,
}: Pick<ItemRecord, "id" | "attributes" | "createdAt" | "updatedAt">): ItemSelectView {
  return {
    id,
    meta: { contentHash: contentHash(attributes), createdAt: metaTime(createdAt), updatedAt: metaTime(updatedAt) },
    ...attributes,
  };
}

/** Times of resources are shown to the millisecond, without trailing zeros. */
export function metaTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.?0+Z$/, "Z");
}
