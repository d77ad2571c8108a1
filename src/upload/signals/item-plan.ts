// What is to be published of a signal: its attributes, unless a person has changed them on the item. Pure.
//
// Three states are compared for each attribute: as it is to be, as it was published last, as the item has it now. Where
// the item no longer has what was published, somebody edited it, and that stays; all others follow the signal. An item
// that was never published from here is somebody else's as far as it differs.
import type { ItemSaveView, SignalSaveView } from "../../wire/signal-view.ts";
import { itemSaveView } from "../../wire/signal-view.ts";
import { type AttributeMap, flatten, sameValue, unflatten } from "./attribute-map.ts";
import type { AttributeChange } from "./signal-check.ts";
import type { StoredItem } from "./stored-signals.ts";

export type PublishMode = "createOnly" | "update";

export type ItemPlan =
  /** There is no item yet. */
  | { readonly action: "create"; readonly view: ItemSaveView; readonly base: AttributeMap }
  /** `changes`: what it will have instead. `edited`: what a person has changed, which stays. */
  | {
      readonly action: "update";
      readonly view: ItemSaveView;
      readonly base: AttributeMap;
      readonly changes: readonly AttributeChange[];
      readonly edited: readonly AttributeChange[];
    }
  /** Nothing to do; `base` as it is to be remembered, undefined: nothing was ever published from here. */
  | { readonly action: "keep"; readonly base: AttributeMap | undefined; readonly edited: readonly AttributeChange[] };

/** `visible`: whether the dialect knows of it; an item is made visible then. */
export function itemView(signal: SignalSaveView, input: string, visible: boolean): ItemSaveView {
  return { ...signal, name: signal.name ?? input, ...(visible && { visible: true }) };
}

/** `base`: as published last; undefined: never from here. `item`: undefined where there is none. */
export function planItem(
  wanted: ItemSaveView,
  base: AttributeMap | undefined,
  item: StoredItem | undefined,
  mode: PublishMode,
): ItemPlan {
  const ours = flatten(wanted);
  if (!item) return { action: "create", view: wanted, base: ours };
  const theirs = flatten({ ...item.attributes, visible: item.visible });
  const shown = new Set([...Object.keys(item.attributes), ...(item.visible === undefined ? [] : ["visible"])]);
  const merged = new Map(theirs);
  const nextBase = new Map<string, unknown>();
  const changes: AttributeChange[] = [];
  const edited: AttributeChange[] = [];
  for (const attribute of [...new Set([...ours.keys(), ...theirs.keys(), ...(base?.keys() ?? [])])].sort()) {
    const [name = attribute] = attribute.split(".", 1);
    const [own, there, before] = [ours, theirs, base].map((map) => map?.get(attribute));
    // The service does not show it: what is wanted goes along, and nobody can tell whether it was edited.
    if (!shown.has(name)) setOrDelete(merged, attribute, own);
    if (!shown.has(name) || sameValue(own, there)) setOrDelete(nextBase, attribute, own);
    // Annotations are merged by the service: those of others are theirs, and none can be taken away.
    else if (name === "annotations" && own === undefined) continue;
    else if (base !== undefined && sameValue(before, there)) {
      changes.push({ attribute, ours: own, theirs: there });
      setOrDelete(merged, attribute, own);
      setOrDelete(nextBase, attribute, own);
    } else {
      edited.push({ attribute, ours: own, theirs: there });
      setOrDelete(nextBase, attribute, before);
    }
  }
  if (mode === "createOnly") return { action: "keep", base, edited };
  if (changes.length === 0) return { action: "keep", base: nextBase, edited };
  const view = itemSaveView.safeParse(unflatten(merged)).data;
  // What a person wrote and what is wanted may together be more than an item can hold.
  if (!view) return { action: "keep", base, edited: [...edited, ...changes] };
  return { action: "update", view, base: nextBase, changes, edited };
}

function setOrDelete(map: Map<string, unknown>, key: string, value: unknown): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
