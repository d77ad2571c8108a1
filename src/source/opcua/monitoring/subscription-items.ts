// The monitored items of one subscription: created, continued from the previous connection, and ended.
//
// Items that are monitored alike share one monitored item of the server, so that a variable with many tags, such as one
// for each element of an array, is transferred once for each change.
import type { OpcuaOptions } from "../config/options.ts";
import { type Item, partOf } from "../nodes/items.ts";
import type { Queue } from "../publishing/notification.ts";
import { queueSize } from "../publishing/publishing-group.ts";
import type { Subscription } from "../publishing/subscription.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import type { NotifiedValue } from "../types/reading.ts";
import { type Entry, itemCalls } from "./item-calls.ts";
import { type MonitoringFailure, monitoringFailure, nodeDeleted, notMonitored, tooMany } from "./refused-nodes.ts";

export interface SubscriptionItemsOptions {
  readonly link: Link;
  /** Items per call; 0 if the server declares no limit. */
  readonly limit: number;
  readonly options: OpcuaOptions;
}

/** All maps are by handle. */
export class SubscriptionItems {
  readonly subscription: Subscription;
  /** For the next connection. `save` is called after each change. */
  record: SubscriptionRecord;
  /** Items that the server samples more slowly than requested, or without their dead band or trigger. */
  slowed = 0;
  unfiltered = 0;
  readonly #calls: ReturnType<typeof itemCalls>;
  readonly #queueSize: (everyMs: number) => number;
  readonly #save: () => Promise<void>;
  readonly #monitored = new Map<number, Monitored>();
  /** Monitored items being created. Their first values may arrive before the server's answer. */
  readonly #coming = new Map<number, readonly Item[]>();
  /** Monitored items whose node the server deleted → the status that reported it. */
  readonly #deleted = new Map<number, string>();
  /** Monitored without interruption since the previous connection. */
  readonly #kept = new Set<Monitored>();

  constructor(given: SubscriptionItemsOptions, subscription: Subscription, save: () => Promise<void>) {
    const { firstSequence: _f, former: _o, origin: _n, wanted: _w, ...record } = subscription;
    this.subscription = subscription;
    this.record = record;
    this.#queueSize = (everyMs) => queueSize(given.options, everyMs, record.publishingMs);
    this.#calls = itemCalls(given.link, record.id, given.limit, this.#queueSize);
    this.#save = save;
  }

  get items(): readonly Item[] {
    return itemsIn(this.#monitored.values());
  }

  /** Number of monitored items, each of which may be shared. */
  get size(): number {
    return this.#monitored.size;
  }

  /** Number of items with a queue of one value. */
  get unqueued(): number {
    return itemsIn([...this.#monitored.values()].filter(isUnqueued)).length;
  }

  sharing(handle: number): readonly Item[] | undefined {
    return this.#monitored.get(handle)?.items ?? this.#coming.get(handle);
  }

  queueOf(handle: number): Queue {
    const { items, entry } = this.#monitored.get(handle) ?? {};
    const usual = 2 * Math.ceil(this.subscription.publishingMs / (items?.[0]?.every ?? 1));
    return { size: entry?.[3] ?? 0, usual };
  }

  /** See `Monitoring.divided`. */
  divided() {
    // If the number of the next message is unknown, some may be missing.
    const known = this.subscription.firstSequence !== undefined;
    const parts = Object.groupBy(this.#monitored.values(), (each) => {
      if (!known || !this.#kept.has(each)) return "fresh";
      return isUnqueued(each) ? "brief" : "kept";
    });
    return (["fresh", "brief", "kept"] as const).map((state) => [itemsIn(parts[state] ?? []), state] as const);
  }

  /** Continues the monitored items that the server still has, and deletes those without items. Returns the others. */
  async restore(items: readonly Item[], signal: AbortSignal): Promise<readonly Item[]> {
    const before = this.subscription.items;
    const there = await this.#calls.stillThere(before, signal);
    const known = before.filter((_, i) => there[i]);
    const { monitored, obsolete, missing, isChanged } = restored(known, items, this.#keyOf);
    for (const each of monitored) {
      this.#monitored.set(each.entry[0], each);
      this.#kept.add(each);
    }
    await this.#calls.remove(obsolete, signal);
    // A tag that comes back later must not count as monitored in between.
    if (isChanged || known.length < there.length) await this.#remember();
    return missing;
  }

  /** `failed`: what the server refused. `polled`: what it can read but not monitor; true for lack of room. */
  async create(items: readonly Item[], signal: AbortSignal) {
    const polled = new Map<Item, boolean>();
    const failed: MonitoringFailure[] = [];
    if (items.length === 0) return { failed, polled };
    let { nextHandle } = this.record;
    for (const sharing of alike(items)) this.#coming.set(nextHandle++, sharing);
    // Save first: after a crash, an unsaved handle would be assigned to another node.
    await this.#remember({ nextHandle });
    const asked = Array.from(this.#coming).flatMap(([handle, [first]]) => (first ? [[handle, first] as const] : []));
    const { created, refused } = await this.#calls.create(asked, signal).catch(async (error: unknown) => {
      // The server may have created items whose ids are unknown: the next connection replaces the subscription.
      if (!signal.aborted) await this.#remember({ begun: false });
      throw error;
    });
    for (const { handle, item, id, sampledMs, size, filtered } of created) {
      const sharing = this.#coming.get(handle) ?? [];
      if (!filtered) this.unfiltered += sharing.length;
      if (sampledMs > item.every) this.slowed += sharing.length;
      this.#monitored.set(handle, monitoredFor([handle, id, this.#keyOf(item), size], sharing));
    }
    for (const [handle, { name, description }] of refused)
      for (const item of this.#coming.get(handle) ?? [])
        if (notMonitored.includes(name)) polled.set(item, name === tooMany);
        else failed.push(monitoringFailure(item, `${name}: ${description ?? ""}`));
    this.#coming.clear();
    if (this.size > 0) await this.#remember();
    return { failed, polled };
  }

  /** Tracks deleted nodes by the status of a value. */
  arrived(handle: number, { value, name }: NotifiedValue["statusCode"]): void {
    if (nodeDeleted.includes(value >>> 16)) this.#deleted.set(handle, name);
    else if (this.#deleted.size > 0) this.#deleted.delete(handle);
  }

  /** Ends the items of deleted nodes, which stay silent, and returns them as failures. */
  async takeDeleted(signal: AbortSignal): Promise<MonitoringFailure[]> {
    const reasons = new Map<Item, string>();
    for (const [handle, reason] of this.#deleted)
      for (const item of this.#monitored.get(handle)?.items ?? []) reasons.set(item, reason);
    this.#deleted.clear();
    await this.end(reasons, signal);
    return Array.from(reasons, (each) => monitoringFailure(...each));
  }

  /** Removes and returns the items that the server monitors no more. */
  async takeForgotten(signal: AbortSignal): Promise<readonly Item[]> {
    const known = [...this.#monitored.values()];
    const entries = known.map(({ entry }) => entry);
    // The silence watch decides whether a server that does not answer is lost.
    const there = await this.#calls.stillThere(entries, signal).catch(() => []);
    // Others may have been removed meanwhile.
    const gone = known.filter(({ entry }, i) => there[i] === false && this.#monitored.has(entry[0]));
    const items = new Set(itemsIn(gone));
    // If the server has them nevertheless, they must not add up.
    await this.end(items, signal);
    return [...items];
  }

  /** Ends the monitored items that one of `items` shares. */
  async end(items: Pick<ReadonlySet<Item>, "has">, signal: AbortSignal): Promise<void> {
    const ended = [...this.#monitored.values()].filter((each) => each.items.some((item) => items.has(item)));
    for (const { entry } of ended) this.#monitored.delete(entry[0]);
    await this.#calls.remove(
      ended.map(({ entry }) => entry),
      signal,
    );
  }

  readonly #keyOf = (item: Item) => keyOf(item, this.#queueSize(item.every));

  #remember(changes?: Partial<SubscriptionRecord>): Promise<void> {
    const items = Array.from(this.#monitored.values(), ({ entry }) => entry);
    this.record = { ...this.record, items, ...changes };
    return this.#save();
  }
}

/** A monitored item of the server, and the items of the tags that share it. */
interface Monitored {
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
function isUnqueued({ entry }: Monitored): boolean {
  return entry[3] === 1;
}
