// Publishes signals to items: those that are fit for it, and never over what a person has changed.
import type { InputId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { saveViewIn } from "../client/dialect.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { unmetRules } from "../client/quality-rules.ts";
import { type AttributeMap, sameValue } from "./attribute-map.ts";
import { type ItemPlan, itemView, type PublishMode, planItem } from "./item-plan.ts";
import type { PublishedItem, PublishedItems } from "./published-items.ts";
import { savePaged } from "./save-paged.ts";
import { signalView } from "./signal-check.ts";
import type { StoredSignal } from "./stored-signals.ts";

export interface ItemPublisherParts {
  readonly caller: MethodCaller;
  /** Stays the caller's. */
  readonly published: PublishedItems;
  readonly mode: PublishMode;
  /** See `quality-rules`. */
  readonly require: readonly string[];
  readonly log: Logger;
}

export interface PlannedItem {
  readonly input: InputId;
  readonly stored: StoredSignal;
  readonly plan:
    | ItemPlan
    /** Not fit to be published: `missing` of it. */
    | { readonly action: "unfit"; readonly missing: readonly string[] }
    /** There is an item that the service does not show. */
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

  /** What is to be done for a signal. Throws when the record of what was published cannot be read. */
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

  /** Does it. Rejects as `savePaged` does; what was published until then is remembered. */
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
            // Created by somebody else in between: createOnly has left it as it is.
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

  /** An item that has become as it is to be, by whomever: from now on it follows the signal. */
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
      const reason = error instanceof Error ? error.message : String(error);
      // Next time they are found to be as they are to be, and remembered then.
      this.#parts.log.warn({ reason, items: records.length }, "what was published cannot be written down for now");
    }
  }
}

function sameMap(a: AttributeMap | undefined, b: AttributeMap): boolean {
  return sameValue(a && Object.fromEntries(a), Object.fromEntries(b));
}
