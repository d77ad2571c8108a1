// Unfilled gaps. At most one per item is pending: overflows during a lookup extend it.

import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { TagGap } from "../../../core/source.ts";

export type Cause = TagGap["cause"];

export interface HistoryGap<Item> {
  readonly item: Item;
  /** Key of the node, as in `HistoryMemory`. */
  readonly key: string;
  /** Exclusive bounds. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
  /** Several if gaps were merged. */
  readonly causes: ReadonlySet<Cause>;
  /** True if a value measured at `to` was received. False: it is unknown whether there is one. */
  readonly valueAtEnd: boolean;
}

export class Gaps<Item> {
  /** Keyed by item: items of one node are filled separately. */
  #waiting = new Map<Item, HistoryGap<Item>>();
  /** Key → number of gaps that are pending or taken, and not closed. */
  readonly #open = new Map<string, number>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Adds a gap; merges it with a pending gap of the same item. */
  add(gap: HistoryGap<Item>): void {
    this.#open.set(gap.key, (this.#open.get(gap.key) ?? 0) + 1);
    this.giveBack(gap);
  }

  take(): HistoryGap<Item>[] {
    const taken = [...this.#waiting.values()];
    this.#waiting = new Map();
    return taken;
  }

  /** Makes a taken gap pending again after a failed attempt. */
  giveBack(gap: HistoryGap<Item>): void {
    const before = this.#waiting.get(gap.item);
    if (before) this.close(gap.key);
    this.#waiting.set(gap.item, before ? joined(gap, before) : gap);
  }

  /** Closes a gap that is filled or lost. True if its node has no other gap. */
  close(key: string): boolean {
    const left = (this.#open.get(key) ?? 1) - 1;
    if (left > 0) this.#open.set(key, left);
    else this.#open.delete(key);
    return left === 0;
  }
}

function joined<Item>(gap: HistoryGap<Item>, before: HistoryGap<Item>): HistoryGap<Item> {
  return {
    ...gap,
    from: epochMicros(Math.min(gap.from, before.from)),
    to: epochMicros(Math.max(gap.to, before.to)),
    causes: new Set([...gap.causes, ...before.causes]),
    valueAtEnd: gap.to > before.to ? gap.valueAtEnd : before.valueAtEnd,
  };
}

/** One entry per cause, as the agent records causes separately. */
export function tagGaps(
  gap: Omit<HistoryGap<Pick<TagGap, "tag" | "captures" | "address">>, "key" | "valueAtEnd">,
  state: TagGap["state"],
  reason: string,
): TagGap[] {
  const { item, from, to, causes } = gap;
  const { tag, captures, address = "" } = item;
  return [...causes].map((cause) => ({ tag, captures, address, from, to, cause, state, reason }));
}
