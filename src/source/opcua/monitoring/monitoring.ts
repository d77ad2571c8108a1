// The monitored items of a connection: their subscriptions and handles, failures with reasons, and retries.
import type { OpcuaOptions } from "../config/options.ts";
import type { Item, Unresolved } from "../nodes/items.ts";
import type { Queue } from "../publishing/notification.ts";
import { groupFor, publishingFor, queueSize } from "../publishing/publishing-group.ts";
import type { Former, Subscription } from "../publishing/subscription.ts";
import type { Link } from "../session/link.ts";
import type { Resumption, SubscriptionRecord } from "../session/resumption.ts";
import { BatchSize } from "../session/services.ts";
import type { NotifiedValue } from "../types/reading.ts";
import { createItems, deleteItems, endItems, type ItemCalling, idsOf, stillThere } from "./item-calls.ts";
import { type MonitoringFailure, monitoringFailure, nodeDeleted, notMonitored, tooMany } from "./refused-nodes.ts";
import { alike, formerItems, isUnqueued, itemsIn, keyOf, type Monitored, monitoredFor, restored } from "./sharing.ts";

export interface MonitoringOptions {
  readonly link: Link;
  /** Items per call; 0 if the server declares no limit. */
  readonly limit: number;
  readonly options: OpcuaOptions;
  readonly resumption: Pick<Resumption, "remember">;
  /** If empty, all items are polled. */
  readonly subscriptions: readonly Subscription[];
  /** Former subscriptions to fetch kept messages from, which no group continues. */
  readonly orphans: readonly Former[];
}

/** A subscription with its monitored items; all maps are by handle. */
interface Group {
  readonly subscription: Subscription;
  readonly calling: ItemCalling;
  readonly monitored: Map<number, Monitored>;
  /** Monitored items being created. Their first values may arrive before the server's answer. */
  readonly coming: Map<number, readonly Item[]>;
  /** Monitored items whose node the server deleted → the status that reported it. */
  readonly deleted: Map<number, string>;
  nextHandle: number;
}

export class Monitoring {
  readonly #options: MonitoringOptions;
  readonly #groups: ReadonlyMap<number, Group>;
  readonly #records = new Map<number, SubscriptionRecord>();
  /** Items of former subscriptions, by subscription id and handle. */
  readonly #former = new Map<number, ReadonlyMap<number, readonly Item[]>>();
  /** Monitored without interruption since the previous connection. */
  readonly #kept = new Set<Monitored>();
  /** Items that are polled. True: the server had no room to monitor them; try again later. */
  readonly #polled = new Map<Item, boolean>();
  failures: MonitoringFailure[] = [];
  #slowed = 0;
  #unfiltered = 0;

  constructor(given: MonitoringOptions) {
    this.#options = given;
    const { link, limit, options, subscriptions } = given;
    this.#groups = new Map(
      subscriptions.map((subscription) => {
        const { id: subscriptionId, nextHandle, publishingMs } = subscription;
        const calling: ItemCalling = {
          link,
          subscriptionId,
          batch: new BatchSize(limit, 1_000),
          queueSize: (everyMs) => queueSize(options, everyMs, publishingMs),
        };
        const maps = { monitored: new Map(), coming: new Map(), deleted: new Map() };
        return [subscriptionId, { subscription, calling, ...maps, nextHandle }];
      }),
    );
    for (const { firstSequence: _f, former: _o, origin: _n, wanted: _w, ...record } of subscriptions)
      this.#records.set(record.id, record);
    // If this connection is lost before their messages are fetched, the next one fetches them.
    for (const { available: _, ...former } of this.formers)
      this.#records.set(former.id, { ...former, group: `former ${former.id}` });
  }

  /** The items that share a monitored item of the server; none if the handle is unknown. */
  sharing(subscription: number, handle: number): readonly Item[] {
    const group = this.#groups.get(subscription);
    if (!group) return this.#former.get(subscription)?.get(handle) ?? [];
    return group.monitored.get(handle)?.items ?? group.coming.get(handle) ?? [];
  }

  get subscriptions(): readonly Subscription[] {
    return this.#options.subscriptions;
  }

  /** All subscriptions that only deliver kept messages. */
  get formers(): readonly Former[] {
    return [...this.subscriptions.flatMap(({ former }) => former ?? []), ...this.#options.orphans];
  }

  items(subscription?: number): readonly Item[] {
    const groups = subscription === undefined ? [...this.#groups.values()] : [this.#groups.get(subscription)];
    return groups.flatMap((group) => itemsIn(group?.monitored.values() ?? []));
  }

  /** Items that the server can read but not monitor. */
  get polled(): readonly Item[] {
    return [...this.#polled.keys()];
  }

  /** Numbers of items with a limitation. `unqueued`: a queue of one value, without reports of discarded ones. */
  get counts() {
    const monitored = [...this.#groups.values()].flatMap((group) => [...group.monitored.values()]);
    return {
      crowdedOut: [...this.#polled.values()].filter(Boolean).length,
      slowed: this.#slowed,
      unfiltered: this.#unfiltered,
      unqueued: itemsIn(monitored.filter(isUnqueued)).length,
    };
  }

  /** Marks the subscriptions as begun, once gaps from before them are recorded. */
  async begun(): Promise<void> {
    const fresh = [...this.#records.values()].filter(({ id, begun }) => !begun && this.#groups.has(id));
    for (const record of fresh) this.#records.set(record.id, { ...record, begun: true });
    if (fresh.length > 0) await this.#save();
  }

  /**
   * Groups all items by possible losses since the previous connection. `kept`: none unreported; `brief`: values
   * discarded from a queue of one; `fresh`: any.
   */
  *divided(): Generator<readonly [items: readonly Item[], state: "fresh" | "brief" | "kept"]> {
    for (const { subscription, monitored } of this.#groups.values()) {
      // If the number of the next message is unknown, some may be missing.
      const known = subscription.firstSequence !== undefined;
      const parts = Object.groupBy(monitored.values(), (each) => {
        if (!known || !this.#kept.has(each)) return "fresh";
        return isUnqueued(each) ? "brief" : "kept";
      });
      for (const state of ["fresh", "brief", "kept"] as const) yield [itemsIn(parts[state] ?? []), state];
    }
    yield [this.polled, "fresh"];
  }

  queueOf(subscription: number, handle: number): Queue {
    const group = this.#groups.get(subscription);
    const { items, entry } = group?.monitored.get(handle) ?? {};
    const publishingMs = group?.subscription.publishingMs ?? 0;
    return { size: entry?.[3] ?? 0, usual: 2 * Math.ceil(publishingMs / (items?.[0]?.every ?? 1)) };
  }

  /**
   * Monitors the items, each in the subscription of its group. In a resumed subscription, monitored items that the server
   * still has are kept, and those that are no longer configured are deleted. A refused item becomes a failure and does
   * not affect others. Rejects with `SOURCE_*` if a call fails.
   */
  async begin(items: readonly Item[], unresolved: readonly Unresolved[], signal: AbortSignal): Promise<void> {
    this.failures = unresolved.map((failure) => ({ ...failure, captures: {} }));
    for (const former of this.formers) this.#former.set(former.id, formerItems(former.items, items));
    const parts = this.#divide(items);
    for (const group of this.#groups.values()) {
      const { calling, subscription } = group;
      const there = await stillThere(calling, idsOf(subscription.items), signal);
      const known = subscription.items.filter((_, i) => there[i]);
      const keyFor = (item: Item) => keyOf(item, calling.queueSize(item.every));
      const { monitored, obsolete, missing, isChanged } = restored(known, parts.get(group) ?? [], keyFor);
      for (const each of monitored) {
        group.monitored.set(each.entry[0], each);
        this.#kept.add(each);
      }
      await deleteItems(calling, idsOf(obsolete), signal);
      // A tag that comes back later must not count as monitored in between.
      if (isChanged || known.length < there.length) await this.#saveGroup(group);
      await this.#create(group, missing, signal);
    }
  }

  async add(items: readonly Item[], signal: AbortSignal): Promise<MonitoringFailure[]> {
    const failures: MonitoringFailure[] = [];
    for (const [group, part] of this.#divide(items)) failures.push(...(await this.#create(group, part, signal)));
    return failures;
  }

  async #create(group: Group, items: readonly Item[], signal: AbortSignal): Promise<MonitoringFailure[]> {
    if (items.length === 0) return [];
    const { calling, monitored, coming } = group;
    const numbered = alike(items).map((sharing) => [group.nextHandle++, sharing] as const);
    // Save first: after a crash, an unsaved handle would be assigned to another node.
    await this.#saveGroup(group);
    for (const [handle, sharing] of numbered) coming.set(handle, sharing);
    const asked = numbered.flatMap(([handle, [first]]) => (first ? [[handle, first] as const] : []));
    const { created, refused } = await createItems(calling, asked, signal).catch(async (error: unknown) => {
      // The server may have created items whose ids are unknown: the next connection replaces the subscription.
      if (!signal.aborted) await this.#saveGroup(group, { begun: false });
      throw error;
    });
    for (const { handle, item, id, sampledMs, size, filtered } of created) {
      const sharing = coming.get(handle) ?? [];
      if (!filtered) this.#unfiltered += sharing.length;
      if (sampledMs > item.every) this.#slowed += sharing.length;
      monitored.set(handle, monitoredFor([handle, id, keyOf(item, calling.queueSize(item.every)), size], sharing));
    }
    const failed = refused.flatMap(([handle, { name, description }]) => {
      const sharing = coming.get(handle) ?? [];
      if (!notMonitored.includes(name))
        return sharing.map((item) => monitoringFailure(item, `${name}: ${description ?? ""}`));
      for (const item of sharing) this.#polled.set(item, name === tooMany);
      return [];
    });
    coming.clear();
    this.failures.push(...failed);
    if (monitored.size > 0) await this.#saveGroup(group);
    return failed;
  }

  /** Tracks deleted nodes by the status of a value. */
  arrived(subscription: number, handle: number, { value, name }: NotifiedValue["statusCode"]): void {
    const deleted = this.#groups.get(subscription)?.deleted;
    if (nodeDeleted.includes(value >>> 16)) deleted?.set(handle, name);
    else if (deleted?.size) deleted.delete(handle);
  }

  /** Removes and returns the failures for a retry, and deletes the items of deleted nodes, which stay silent. */
  async takeFailures(signal: AbortSignal): Promise<MonitoringFailure[]> {
    for (const group of this.#groups.values()) {
      const deleted = new Map(group.deleted);
      group.deleted.clear();
      for (const [handle, reason] of deleted)
        for (const item of group.monitored.get(handle)?.items ?? [])
          this.failures.push(monitoringFailure(item, reason));
      await endItems(group, deleted, signal);
    }
    return this.failures.splice(0);
  }

  /** Monitors and polls the items no more, since any answer with their values fails. They become failures. */
  async refuse(reasons: ReadonlyMap<Item, string>, signal: AbortSignal): Promise<void> {
    for (const group of this.#groups.values()) {
      const refused = [...group.monitored].filter(([, { items }]) => items.some((item) => reasons.has(item)));
      await endItems(group, new Map(refused), signal);
    }
    for (const item of reasons.keys()) this.#polled.delete(item);
    for (const each of reasons) this.failures.push({ ...monitoringFailure(...each), isUnreadable: true });
  }

  /** Removes and returns the items that the server monitors no more, although it continues the subscription. */
  async takeForgotten(signal: AbortSignal): Promise<Item[]> {
    const forgotten: Monitored[] = [];
    for (const group of this.#groups.values()) {
      const known = [...group.monitored.values()];
      const ids = (of: readonly Monitored[]) => idsOf(of.map(({ entry }) => entry));
      // The silence watch decides whether a server that does not answer is lost.
      const there = await stillThere(group.calling, ids(known), signal).catch(() => []);
      // Others may have been removed meanwhile.
      const gone = known.filter(({ entry }, i) => there[i] === false && group.monitored.delete(entry[0]));
      forgotten.push(...gone);
      // If the server has them nevertheless, they must not add up.
      await deleteItems(group.calling, ids(gone), signal);
    }
    signal.throwIfAborted();
    return itemsIn(forgotten);
  }

  /** Removes and returns the items that are polled for lack of room, for a retry. */
  takeCrowdedOut(): Item[] {
    const taken = this.polled.filter((item) => this.#polled.get(item));
    for (const item of taken) this.#polled.delete(item);
    return taken;
  }

  /** Removes one subscription, or all, from the record. Rejects like `Resumption.remember`. */
  forget(subscription?: number): Promise<void> {
    if (subscription === undefined) this.#records.clear();
    else this.#records.delete(subscription);
    return this.#save();
  }

  #saveGroup({ subscription, monitored, nextHandle }: Group, changes?: { readonly begun: boolean }): Promise<void> {
    const record = this.#records.get(subscription.id);
    const items = Array.from(monitored.values(), ({ entry }) => entry);
    if (record) this.#records.set(record.id, { ...record, items, nextHandle, ...changes });
    return this.#save();
  }

  #save(): Promise<void> {
    return this.#options.resumption.remember({ subscriptions: [...this.#records.values()] });
  }

  /** Items by subscription. Items without a subscription are polled. */
  #divide(items: readonly Item[]): Map<Group, Item[]> {
    const parts = new Map<Group, Item[]>();
    const groups = Array.from(this.#groups.values(), (group) => {
      const { publishingMs } = group.subscription.wanted;
      return { group, publishingMs, items: group.monitored.size };
    });
    for (const sharing of alike(items)) {
      const taker = groupFor(groups, publishingFor(this.#options.options, sharing[0]?.every ?? 0));
      if (!taker) {
        for (const item of sharing) this.#polled.set(item, false);
        continue;
      }
      taker.items++;
      const part = parts.get(taker.group);
      if (part) part.push(...sharing);
      else parts.set(taker.group, sharing);
    }
    return parts;
  }
}
