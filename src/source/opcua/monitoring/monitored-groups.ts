// The monitored items of all subscriptions of a connection: which item is in which, and what stands behind a handle.

import type { OpcuaOptions } from "../config/options.ts";
import type { Item, Unresolved } from "../nodes/items.ts";
import type { Resumption, SubscriptionRecord } from "../session/resumption.ts";
import { likeness, likenessOf, nodeOf } from "./item-calls.ts";
import { Monitoring, type MonitoringFailure, type MonitoringOptions, type ValueStatus } from "./monitoring.ts";
import type { Queue } from "./notification.ts";
import { groupFor, publishingFor, queueSize } from "./publishing-group.ts";
import type { Former, Subscription } from "./subscription.ts";

export interface MonitoredGroupsOptions extends Pick<MonitoringOptions, "link" | "limit"> {
  readonly options: OpcuaOptions;
  readonly resumption: Resumption;
  /** None: everything is polled. */
  readonly subscriptions: readonly Subscription[];
  /** Subscriptions that hand over what they have kept, and that no group goes on with. */
  readonly orphans: readonly Former[];
}

interface Group {
  readonly subscription: Subscription;
  readonly monitoring: Monitoring;
}

export class MonitoredGroups {
  readonly #options: MonitoredGroupsOptions;
  readonly #groups: ReadonlyMap<number, Group>;
  readonly #records = new Map<number, SubscriptionRecord>();
  /** Items of subscriptions that hand over what they have kept, by handle. */
  readonly #former = new Map<number, ReadonlyMap<number, Item>>();
  readonly #polled: Item[] = [];
  #failures: MonitoringFailure[] = [];

  constructor(options: MonitoredGroupsOptions) {
    this.#options = options;
    const { link, limit } = options;
    this.#groups = new Map(
      options.subscriptions.map((subscription) => {
        const { firstSequence: _f, former: _o, origin: _n, wanted: _w, ...record } = subscription;
        const monitoring = new Monitoring({
          link,
          subscription,
          limit,
          queueSize: (every) => queueSize(options.options, every, subscription.publishingMs),
          save: async (state) => {
            this.#records.set(record.id, { ...record, ...this.#records.get(record.id), ...state });
            await this.#save();
          },
        });
        this.#records.set(record.id, record);
        return [record.id, { subscription, monitoring }];
      }),
    );
    // Should this connection be lost before they have handed over what they have, the next one asks for them.
    for (const { available: _, ...former } of this.formers)
      this.#records.set(former.id, { ...former, group: `former ${former.id}` });
  }

  /** What a subscription notifies under a handle. */
  item(subscription: number, handle: number): Item | undefined {
    return this.#groups.get(subscription)?.monitoring.item(handle) ?? this.#former.get(subscription)?.get(handle);
  }

  get subscriptions(): readonly Subscription[] {
    return this.#options.subscriptions;
  }

  /** All that hand over what they have kept. */
  get formers(): readonly Former[] {
    return [...this.subscriptions.flatMap(({ former }) => former ?? []), ...this.#options.orphans];
  }

  /** Of one subscription, or of all. */
  items(subscription?: number): readonly Item[] {
    const all = subscription === undefined ? [...this.#groups.values()] : [this.#groups.get(subscription)];
    return all.flatMap((group) => group?.monitoring.items ?? []);
  }

  /** Items that the server lets be read, but does not monitor. */
  get polled(): readonly Item[] {
    return [...this.#polled, ...this.#all(({ polled }) => polled)];
  }

  get failures(): readonly MonitoringFailure[] {
    return [...this.#failures, ...this.#all(({ failures }) => failures)];
  }

  /** How many items the server does not treat as asked, as `Monitoring` has them. */
  get counts() {
    const sum = (of: (monitoring: Monitoring) => number) =>
      [...this.#groups.values()].reduce((count, { monitoring }) => count + of(monitoring), 0);
    return {
      crowdedOut: sum(({ crowdedOut }) => crowdedOut),
      slowed: sum(({ slowed }) => slowed),
      unfiltered: sum(({ unfiltered }) => unfiltered),
      unqueued: sum(({ unqueued }) => unqueued.size),
    };
  }

  /** What may be missing from before the subscriptions began is written down. */
  async begun(): Promise<void> {
    const fresh = [...this.#records.values()].filter(({ id, begun }) => !begun && this.#groups.has(id));
    for (const record of fresh) this.#records.set(record.id, { ...record, begun: true });
    if (fresh.length > 0) await this.#save();
  }

  /**
   * The items of a subscription by what may be missing of them since the connection before: nothing unreported (`kept`), what the
   * server threw away of a queue of one (`brief`), anything (`fresh`).
   */
  divided(subscription: number) {
    const { kept = new Set(), unqueued = new Set() } = this.#groups.get(subscription)?.monitoring ?? {};
    // Where nobody knows which message is the next, some may be missing.
    const known = this.#groups.get(subscription)?.subscription.firstSequence !== undefined;
    return Object.groupBy(this.items(subscription), (item) => {
      if (!known || !kept.has(item)) return "fresh";
      return unqueued.has(item) ? "brief" : "kept";
    });
  }

  /** The queue that the server has for a handle. */
  queueOf(subscription: number, handle: number): Queue {
    const group = this.#groups.get(subscription);
    const every = group?.monitoring.item(handle)?.every ?? 1;
    const usual = 2 * Math.ceil((group?.subscription.publishingMs ?? 0) / every);
    return { size: group?.monitoring.queueOf(handle) ?? 0, usual };
  }

  /** As `Monitoring.begin`, each item in its group. */
  async begin(items: readonly Item[], unresolved: readonly Unresolved[], signal: AbortSignal): Promise<void> {
    this.#failures = unresolved.map((failure) => ({ ...failure, captures: {} }));
    for (const former of this.formers) this.#former.set(former.id, itemsOf(former, items));
    const parts = this.#divide(items);
    for (const [id, { monitoring }] of this.#groups) await monitoring.begin(parts.get(id) ?? [], signal);
  }

  /** Monitors more items. Gives the failures among them. */
  async add(items: readonly Item[], signal: AbortSignal): Promise<MonitoringFailure[]> {
    const failures: MonitoringFailure[] = [];
    for (const [id, part] of this.#divide(items))
      failures.push(...((await this.#groups.get(id)?.monitoring.add(part, signal)) ?? []));
    return failures;
  }

  /** As `Monitoring.arrived`. */
  arrived(subscription: number, handle: number, status: ValueStatus): void {
    this.#groups.get(subscription)?.monitoring.arrived(handle, status);
  }

  /** Takes the failures out, to try them again. */
  async takeFailures(signal: AbortSignal): Promise<MonitoringFailure[]> {
    const failures = this.#failures.splice(0);
    for (const { monitoring } of this.#groups.values()) failures.push(...(await monitoring.takeFailures(signal)));
    return failures;
  }

  /** Takes the items out that are polled because the server had no room for them, to try them again. */
  takeCrowdedOut(): Item[] {
    return this.#all((monitoring) => monitoring.takeCrowdedOut());
  }

  /** Puts back what still fails. */
  fail(failures: readonly MonitoringFailure[]): void {
    this.#failures.push(...failures);
  }

  /** The next connection need not look for this subscription, or for any. Rejects as `Resumption.remember` does. */
  async forget(subscription?: number): Promise<void> {
    if (subscription === undefined) this.#records.clear();
    else this.#records.delete(subscription);
    await this.#save();
  }

  #save(): Promise<void> {
    return this.#options.resumption.remember({ subscriptions: [...this.#records.values()] });
  }

  /** Items by the subscription that takes them; without subscriptions they are polled. */
  #divide(items: readonly Item[]): Map<number, Item[]> {
    const parts = new Map<number, Item[]>();
    const groups = [...this.#groups].map(([id, { subscription, monitoring }]) => ({
      id,
      publishingMs: subscription.wanted.publishingMs,
      items: monitoring.items.length,
    }));
    for (const item of items) {
      const group = groupFor(groups, publishingFor(this.#options.options, item.every));
      if (!group) {
        this.#polled.push(item);
        continue;
      }
      group.items++;
      const part = parts.get(group.id);
      if (part) part.push(item);
      else parts.set(group.id, [item]);
    }
    return parts;
  }

  #all<T>(of: (monitoring: Monitoring) => readonly T[]): T[] {
    return [...this.#groups.values()].flatMap(({ monitoring }) => of(monitoring));
  }
}

/** What the handles of a former subscription stand for: items of the same nodes, first those that are sampled alike. */
function itemsOf({ items: entries }: Former, items: readonly Item[]): ReadonlyMap<number, Item> {
  const found = new Map<number, Item>();
  const levels = [
    [likenessOf, likeness],
    [nodeOf, ({ nodeId }: Item) => nodeId.toString()],
  ] as const;
  for (const [ofEntry, ofItem] of levels) {
    const waiting = Map.groupBy(
      entries.filter(([handle]) => !found.has(handle)),
      ofEntry,
    );
    const taken = new Set(found.values());
    for (const item of items) {
      const entry = taken.has(item) ? undefined : waiting.get(ofItem(item))?.shift();
      if (entry) found.set(entry[0], item);
    }
  }
  return found;
}
