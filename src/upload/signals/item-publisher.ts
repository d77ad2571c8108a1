// Publishes qualified signals as items, and never overwrites edits of a person.
import { reasonOf } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { type ItemSaveView, itemSaveView, type SignalSaveView } from "../../wire/signal-view.ts";
import { type MethodCaller, saveViewIn } from "../client/method-caller.ts";
import { unmetRules } from "../client/options.ts";
import { type AttributeChange, type AttributeMap, flatten, sameValue, signalView, unflatten } from "./attribute-map.ts";
import { savePaged } from "./save-paged.ts";
import type { PublishedItem, PublishedItems } from "./signal-files.ts";
import type { StoredItem, StoredSignal } from "./stored-signals.ts";

export interface ItemPublisherParts {
  readonly caller: MethodCaller;
  /** The caller disposes it. */
  readonly published: PublishedItems;
  readonly mode: PublishMode;
  readonly require: readonly string[];
  readonly log: Logger;
}

export interface PlannedItem {
  readonly input: InputId;
  readonly stored: StoredSignal;
  readonly plan:
    | ItemPlan
    /** Not qualified; `missing` names the unmet rules. */
    | { readonly action: "unfit"; readonly missing: readonly string[] }
    /** The service does not return the existing item. */
    | { readonly action: "hidden" };
}

export interface Publication {
  readonly published: readonly InputId[];
  readonly refused: readonly { readonly input: InputId; readonly reason: string }[];
}

export class ItemPublisher {
  readonly #parts: ItemPublisherParts;

  constructor(parts: ItemPublisherParts) {
    this.#parts = parts;
  }

  /** The required action for a signal. Throws if the record of published items is unreadable. */
  plan(input: InputId, signal: PartialSignalMetadata, stored: StoredSignal): PlannedItem {
    const { caller, published, mode, require } = this.#parts;
    const planned = (plan: PlannedItem["plan"]): PlannedItem => ({ input, stored, plan });
    const missing = unmetRules(signal, require);
    const view = signalView(input, signal);
    if (missing.length > 0 || !view) return planned({ action: "unfit", missing });
    if (stored.itemId !== undefined && !stored.item) return planned({ action: "hidden" });
    const base = published.base(input, stored.itemId);
    return planned(planItem(itemView(view, input, caller.version === "1.1"), base, stored.item, mode));
  }

  /** Executes the plans. Rejects as `savePaged` does; items published until then are recorded. */
  async publish(items: readonly PlannedItem[], signal: AbortSignal): Promise<Publication> {
    const { caller, mode } = this.#parts;
    const toDo = new Map(items.map((item) => [String(item.stored.id), item]));
    const savings = items.flatMap(({ stored, plan }) =>
      plan.action === "create" || plan.action === "update"
        ? [{ key: stored.id, view: saveViewIn(caller.version, plan.view) }]
        : [],
    );
    this.#remember(items.flatMap((item) => this.#adopted(item)));
    const published: InputId[] = [];
    const refused = await savePaged(
      caller,
      savings,
      {
        method: "admin.publishSignals",
        createOnly: mode === "createOnly",
        saved: (summaries) => {
          const records: PublishedItem[] = [];
          for (const [id, summary] of summaries) {
            const item = toDo.get(id);
            if (item?.plan.action !== "create" && item?.plan.action !== "update") continue;
            published.push(item.input);
            // Another client created it in between; createOnly leaves it unchanged.
            if (mode === "update" || summary.created)
              records.push({ input: item.input, itemId: summary.id, base: item.plan.base });
          }
          this.#remember(records);
        },
      },
      signal,
    );
    return {
      published,
      refused: refused.flatMap(({ key, reason }) => {
        const input = toDo.get(key)?.input;
        return input === undefined ? [] : [{ input, reason }];
      }),
    };
  }

  /** An item that equals its signal follows the signal from now on, even if a person changed it. */
  #adopted({ input, stored, plan }: PlannedItem): PublishedItem[] {
    if (plan.action !== "keep" || plan.base === undefined || stored.itemId === undefined) return [];
    const before = this.#parts.published.base(input, stored.itemId);
    if (sameMap(before, plan.base)) return [];
    return [{ input, itemId: stored.itemId, base: plan.base }];
  }

  #remember(records: readonly PublishedItem[]): void {
    if (records.length === 0) return;
    try {
      this.#parts.published.put(records);
    } catch (error) {
      // The next run finds the items unchanged and records them.
      this.#parts.log.warn(
        { reason: reasonOf(error), items: records.length },
        "cannot store what was published; trying again",
      );
    }
  }
}

function sameMap(a: AttributeMap | undefined, b: AttributeMap): boolean {
  return sameValue(a && Object.fromEntries(a), Object.fromEntries(b));
}

export type PublishMode = "createOnly" | "update";

export type ItemPlan =
  /** The item does not exist yet. */
  | { readonly action: "create"; readonly view: ItemSaveView; readonly base: AttributeMap }
  /** `changes`: attributes to update. `edited`: attributes that a person changed, which stay. */
  | {
      readonly action: "update";
      readonly view: ItemSaveView;
      readonly base: AttributeMap;
      readonly changes: readonly AttributeChange[];
      readonly edited: readonly AttributeChange[];
    }
  /** No action. `base`: the state to record; undefined: never published from here. */
  | { readonly action: "keep"; readonly base: AttributeMap | undefined; readonly edited: readonly AttributeChange[] };

/** `visible`: whether the dialect has this attribute; the item is then made visible. */
export function itemView(signal: SignalSaveView, input: string, visible: boolean): ItemSaveView {
  return { ...signal, name: signal.name ?? input, ...(visible && { visible: true }) };
}

/**
 * Merges three states of each attribute: wanted, last published, and current. If the current state differs from the
 * published one, a person has edited the attribute, and the edit stays. All other attributes follow the signal.
 * Differences of an item that was never published from here count as edits. `base`: last published state; undefined:
 * never published from here. `item`: undefined if it does not exist.
 */
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
    // The service does not return the attribute, so edits cannot be detected, and the wanted value is sent.
    if (!shown.has(name)) setOrDelete(merged, attribute, own);
    if (!shown.has(name) || sameValue(own, there)) setOrDelete(nextBase, attribute, own);
    // The service merges annotations. Those of other clients stay, and none can be removed.
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
  // Edits and wanted values combined may exceed the limits of an item.
  if (!view) return { action: "keep", base, edited: [...edited, ...changes] };
  return { action: "update", view, base: nextBase, changes, edited };
}

function setOrDelete(map: Map<string, unknown>, key: string, value: unknown): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
