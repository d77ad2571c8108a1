// Gaps in what is stored, until the server's history has filled them: at most one of an item waits, however often the
// server throws values away while an earlier one is looked up.
import type { TagGap } from "../../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";

export type Cause = TagGap["cause"];

export interface HistoryGap<Item> {
  readonly item: Item;
  /** Of the node, as in `HistoryMemory`. */
  readonly key: string;
  /** Both ends are there already. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
  /** Why: more than one where gaps have become one. */
  readonly causes: ReadonlySet<Cause>;
  /** True if a value measured at `to` was received. False: it is unknown whether there is one. */
  readonly valueAtEnd: boolean;
}

export class Gaps<Item> {
  /** By item: several may be of one node, and each is filled by itself. */
  #waiting = new Map<Item, HistoryGap<Item>>();
  /** By key: how many were taken, or wait, and are not closed. */
  readonly #open = new Map<string, number>();

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** One that waits for the same item becomes part of it. */
  add(gap: HistoryGap<Item>): void {
    this.#open.set(gap.key, (this.#open.get(gap.key) ?? 0) + 1);
    this.giveBack(gap);
  }

  /** Takes all that wait. */
  take(): HistoryGap<Item>[] {
    const taken = [...this.#waiting.values()];
    this.#waiting = new Map();
    return taken;
  }

  /** One that was taken could not be filled for now: it waits again. */
  giveBack(gap: HistoryGap<Item>): void {
    const before = this.#waiting.get(gap.item);
    if (before) this.close(gap.key);
    this.#waiting.set(gap.item, before ? joined(gap, before) : gap);
  }

  /** One is filled, or never will be. True: nothing of this node is missing any more. */
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

/** As the agent is told of it: each cause by itself, since it records them apart. */
export function tagGaps(
  gap: Omit<HistoryGap<Pick<TagGap, "tag" | "captures" | "address">>, "key" | "valueAtEnd">,
  state: TagGap["state"],
  reason: string,
): TagGap[] {
  const { item, from, to, causes } = gap;
  const { tag, captures, address = "" } = item;
  return [...causes].map((cause) => ({ tag, captures, address, from, to, cause, state, reason }));
}
