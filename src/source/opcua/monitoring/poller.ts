// Reads the items that a server does not monitor, at their own interval, and passes on what has changed.
import type { Runtime } from "../../../core/runtime.ts";
import type { Item } from "../nodes/items.ts";
import type { Services } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";
import type { DataValueLike } from "../types/reading.ts";

export interface PollerOptions {
  readonly ua: Ua;
  readonly services: Services;
  readonly runtime: Runtime;
  /** What is to be read now; may grow. */
  readonly items: () => readonly Item[];
  readonly deliver: (values: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal) => Promise<void>;
}

/** How often to look whether there is something to poll at all. */
const idleMs = 1_000;

/** Polls until `signal` aborts. Rejects with `SOURCE_*` when the server cannot be asked. */
export async function poll(
  { ua, services, runtime, items, deliver }: PollerOptions,
  signal: AbortSignal,
): Promise<never> {
  const { clock } = runtime;
  const start = clock.monotonic();
  /** Number of the last slot of each interval, counted from `start`: a slot that was missed is left out, none overlap. */
  const slots = new Map<number, number>();
  const last = new WeakMap<Item, DataValueLike>();
  for (;;) {
    const byInterval = Map.groupBy(items(), ({ every }) => every);
    const elapsed = clock.monotonic() - start;
    for (const [every, due] of byInterval) {
      const slot = Math.floor(elapsed / every);
      if (slots.get(every) === slot) continue;
      slots.set(every, slot);
      const values = await services.read(
        due.map(({ nodeId }) => ({ nodeId, attributeId: ua.AttributeIds.Value })),
        signal,
      );
      const changed = due.flatMap((item, i) => {
        const value = values[i];
        if (!value || same(last.get(item), value)) return [];
        last.set(item, value);
        return [[item, value] as const];
      });
      if (changed.length > 0) await deliver(changed, signal);
    }
    const now = clock.monotonic() - start;
    const next = [...byInterval.keys()].map((every) => (Math.floor(now / every) + 1) * every - now);
    await clock.sleep(Math.max(1, Math.min(idleMs, ...next)), signal);
  }
}

/** Whether nothing has happened between two values: what a subscription would not notify either. */
function same(a: DataValueLike | undefined, b: DataValueLike): boolean {
  return (
    a !== undefined &&
    a.statusCode.value === b.statusCode.value &&
    a.sourceTimestamp?.getTime() === b.sourceTimestamp?.getTime() &&
    a.sourcePicoseconds === b.sourcePicoseconds &&
    JSON.stringify(a.value?.value) === JSON.stringify(b.value?.value)
  );
}
