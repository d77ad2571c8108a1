// Items that are monitored alike share one monitored item of the server, so that a variable with many tags, such as one
// for each element of an array, is transferred once for each change. Recognises items across connections. Pure.
import { type Item, partOf } from "../nodes/items.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";

/** Client handle, server's id, key, queue size on the server, parts of the node that it is monitored for. */
export type Entry = SubscriptionRecord["items"][number];

/** A monitored item of the server, and the items of the tags that share it. */
export interface Monitored {
  readonly items: readonly Item[];
  readonly entry: Entry;
}

/** Equal for items that are monitored alike. Without `queueSize`, equal for items with the same values. */
export function keyOf({ nodeId, every, deadband, trigger }: Item, queueSize?: number): string {
  const filter = [deadband?.kind, deadband?.value, trigger === "timestamp" ? trigger : undefined];
  const queue = queueSize === undefined ? "" : ` ${queueSize}`;
  return `${nodeId.toString()}\n${every}${queue} ${filter.filter((part) => part !== undefined).join(" ")}`;
}

/** Items by the monitored item of the server that they share, since they are monitored alike. */
export function alike(items: readonly Item[]): Item[][] {
  return [...Map.groupBy(items, (item) => keyOf(item)).values()];
}

/** Assigns the handles of a former subscription to items of the same node, preferring those with the same sampling. */
export function formerItems(entries: readonly Entry[], items: readonly Item[]): ReadonlyMap<number, readonly Item[]> {
  const found = new Map<number, readonly Item[]>();
  const levels: (readonly [ofEntry: (key: string) => string, ofItem: (item: Item) => string])[] = [
    [(key) => key.replace(/ \S+(?= [^\n]*$)/, ""), (item) => keyOf(item)],
    [(key) => key.split("\n")[0] ?? "", ({ nodeId }) => nodeId.toString()],
  ];
  for (const [ofEntry, ofItem] of levels) {
    const taken = new Set([...found.values()].flat());
    const waiting = Map.groupBy(
      items.filter((item) => !taken.has(item)),
      ofItem,
    );
    for (const [handle, , key] of entries) {
      const same = found.has(handle) ? undefined : waiting.get(ofEntry(key));
      if (!same) continue;
      found.set(handle, same);
      waiting.delete(ofEntry(key));
    }
  }
  return found;
}

/** Creates the record of a monitored item for the items that share it from now on. */
export function monitoredFor([handle, id, key, size = 0]: Entry, items: readonly Item[]): Monitored {
  const parts = items.map(partOf);
  const isWhole = parts.length === 1 && parts[0] === "";
  return { items, entry: isWhole ? [handle, id, key, size] : [handle, id, key, size, parts] };
}

/**
 * Divides the monitored items of a kept subscription among `items`, each by key and part of its node. `missing`: items
 * that none of them was created for; the server sends their first value with a monitored item of their own. `obsolete`:
 * monitored items without items. `isChanged`: the record lists more than is monitored.
 */
export function restored(entries: readonly Entry[], items: readonly Item[], keyFor: (item: Item) => string) {
  const waiting = Map.groupBy(items, (item) => `${keyFor(item)}\n${partOf(item)}`);
  const monitored: Monitored[] = [];
  const obsolete: Entry[] = [];
  for (const entry of entries) {
    const [, , key, , parts = [""]] = entry;
    const sharing = parts.flatMap((part) => waiting.get(`${key}\n${part}`)?.shift() ?? []);
    if (sharing.length > 0) monitored.push(monitoredFor(entry, sharing));
    else obsolete.push(entry);
  }
  const recorded = entries.reduce((sum, [, , , , parts = [""]]) => sum + parts.length, 0);
  const isChanged = itemsIn(monitored).length < recorded;
  return { monitored, obsolete, missing: [...waiting.values()].flat(), isChanged };
}

export function itemsIn(monitored: Iterable<Monitored>): Item[] {
  return Array.from(monitored, ({ items }) => items).flat();
}

/** With a queue of one value, the server does not report discarded values. */
export function isUnqueued({ entry }: Monitored): boolean {
  return entry[3] === 1;
}
