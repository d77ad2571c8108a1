// Reads items: periodically those that are not monitored, once those with a lost notification.
import type { Runtime } from "../../../core/runtime.ts";
import type { Item } from "../nodes/items.ts";
import { readValues, type Services } from "../session/services.ts";
import type { DataValueLike } from "../types/reading.ts";

export interface ReadingOptions {
  readonly services: Pick<Services, "read">;
  readonly runtime: Pick<Runtime, "clock">;
  /** Receives values like those of a subscription. */
  readonly deliver: (values: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal) => Promise<void>;
}

/** Rejects with `SOURCE_*` if the connection fails. */
export async function readItems(
  services: Pick<Services, "read">,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<(readonly [Item, DataValueLike])[]> {
  const nodes = items.map(({ nodeId }) => nodeId);
  const values = await readValues(services, nodes, signal);
  return items.flatMap((item, i) => (values[i] ? [[item, values[i]] as const] : []));
}

/** How often to check for items to poll. */
const idleMs = 1_000;

/**
 * Polls `items`, which may grow, until `signal` aborts. Calls `alive` with the items of each poll: values that were
 * not delivered are unchanged. Rejects with `SOURCE_*` if the connection fails.
 */
export async function poll(
  options: ReadingOptions & { readonly alive: (every: number, items: readonly Item[]) => void },
  items: () => readonly Item[],
  signal: AbortSignal,
): Promise<never> {
  const { services, deliver, alive } = options;
  const { clock } = options.runtime;
  const start = clock.monotonic();
  /** Interval → its last slot since `start`. Missed slots are skipped; none overlap. */
  const slots = new Map<number, number>();
  const last = new WeakMap<Item, DataValueLike>();
  for (;;) {
    const byInterval = Map.groupBy(items(), ({ every }) => every);
    const elapsed = clock.monotonic() - start;
    for (const [every, due] of byInterval) {
      const slot = Math.floor(elapsed / every);
      if (slots.get(every) === slot) continue;
      slots.set(every, slot);
      const read = await readItems(services, due, signal);
      const changed = read.filter(([item, value]) => !same(last.get(item), value));
      for (const [item, value] of changed) last.set(item, value);
      if (changed.length > 0) await deliver(changed, signal);
      alive(every, due);
    }
    const now = clock.monotonic() - start;
    const next = [...byInterval.keys()].map((every) => (Math.floor(now / every) + 1) * every - now);
    await clock.sleep(Math.max(1, Math.min(idleMs, ...next)), signal);
  }
}

/** Whether a subscription would not report `b` after `a`. */
function same(a: DataValueLike | undefined, b: DataValueLike): boolean {
  return (
    a !== undefined &&
    a.statusCode.value === b.statusCode.value &&
    a.sourceTimestamp?.getTime() === b.sourceTimestamp?.getTime() &&
    a.sourcePicoseconds === b.sourcePicoseconds &&
    JSON.stringify(a.value?.value) === JSON.stringify(b.value?.value)
  );
}

/** An item is read one to two intervals after it was added, when values waiting at the server have arrived. */
const settlingMs = 1_000;

/** Rereads items with a lost notification, unless a newer value arrives: a variable may not change again. */
export function rereader(options: ReadingOptions) {
  let added = new Set<Item>();
  let dueItems = new Set<Item>();
  /** Items being read, without those that have got a newer value. */
  let beingRead = new Set<Item>();

  return {
    add(items: Iterable<Item>): void {
      for (const item of items) added.add(item);
    },
    arrived(items: Iterable<Item>): void {
      const waiting = [added, dueItems, beingRead].filter(({ size }) => size > 0);
      if (waiting.length > 0) for (const item of items) for (const set of waiting) set.delete(item);
    },
    /** Rereads added items until `signal` aborts. Rejects with `SOURCE_*` if the connection fails. */
    async run(signal: AbortSignal): Promise<never> {
      const { services, runtime, deliver } = options;
      for (;;) {
        await runtime.clock.sleep(settlingMs, signal);
        const due = [...dueItems];
        beingRead = dueItems;
        dueItems = added;
        added = new Set();
        if (due.length === 0) continue;
        const read = (await readItems(services, due, signal)).filter(([item]) => beingRead.has(item));
        if (read.length > 0) await deliver(read, signal);
      }
    },
  };
}
