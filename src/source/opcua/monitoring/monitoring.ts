// The items of a connection: monitored, each in the subscription of its group, polled, or failed with a reason.
import type { Item, Unresolved } from "../nodes/items.ts";
import type { Queue } from "../publishing/notification.ts";
import { groupFor, publishingFor } from "../publishing/publishing-group.ts";
import type { Former, Subscription } from "../publishing/subscription.ts";
import type { Resumption, SubscriptionRecord } from "../session/resumption.ts";
import type { NotifiedValue } from "../types/reading.ts";
import { type MonitoringFailure, monitoringFailure } from "./refused-nodes.ts";
import { alike, formerItems, SubscriptionItems, type SubscriptionItemsOptions } from "./subscription-items.ts";

export interface MonitoringOptions extends SubscriptionItemsOptions {
  readonly resumption: Pick<Resumption, "remember">;
  /** If empty, all items are polled. */
  readonly subscriptions: readonly Subscription[];
  /** Former subscriptions to fetch kept messages from, which no group continues. */
  readonly orphans: readonly Former[];
}

export type Monitoring = ReturnType<typeof openMonitoring>;

export function openMonitoring(options: MonitoringOptions) {
  const { subscriptions } = options;
  /** All subscriptions that only deliver kept messages. */
  const formers: readonly Former[] = [...subscriptions.flatMap(({ former }) => former ?? []), ...options.orphans];
  const groups = new Map(subscriptions.map((each) => [each.id, new SubscriptionItems(options, each, save)]));
  /** What the next connection continues, by subscription id. */
  const recorded = new Map<number, { readonly record: SubscriptionRecord }>(groups);
  // If this connection is lost before their messages are fetched, the next one fetches them.
  for (const { available: _, ...former } of formers)
    recorded.set(former.id, { record: { ...former, group: `former ${former.id}` } });
  /** Items of former subscriptions, by subscription id and handle. */
  const formerItemsOf = new Map<number, ReadonlyMap<number, readonly Item[]>>();
  /** Items that are polled. True: the server had no room to monitor them; try again later. */
  const polled = new Map<Item, boolean>();
  const failures: MonitoringFailure[] = [];

  function save(): Promise<void> {
    return options.resumption.remember({ subscriptions: Array.from(recorded.values(), ({ record }) => record) });
  }

  async function create(
    group: SubscriptionItems,
    items: readonly Item[],
    signal: AbortSignal,
  ): Promise<MonitoringFailure[]> {
    const result = await group.create(items, signal);
    for (const [item, isCrowdedOut] of result.polled) polled.set(item, isCrowdedOut);
    failures.push(...result.failed);
    return result.failed;
  }

  /** Items by subscription. Items without a subscription are polled. */
  function divide(items: readonly Item[]): Map<SubscriptionItems, Item[]> {
    const parts = new Map<SubscriptionItems, Item[]>();
    const loads = Array.from(groups.values(), (group) => {
      const { publishingMs } = group.subscription.wanted;
      return { group, publishingMs, items: group.size };
    });
    for (const sharing of alike(items)) {
      const taker = groupFor(loads, publishingFor(options.options, sharing[0]?.every ?? 0));
      if (!taker) {
        for (const item of sharing) polled.set(item, false);
        continue;
      }
      taker.items++;
      const part = parts.get(taker.group);
      if (part) part.push(...sharing);
      else parts.set(taker.group, sharing);
    }
    return parts;
  }

  return {
    subscriptions,
    formers,
    failures,
    /** The items that share a monitored item of the server; none if the handle is unknown. */
    sharing(subscription: number, handle: number): readonly Item[] {
      const group = groups.get(subscription);
      return (group ? group.sharing(handle) : formerItemsOf.get(subscription)?.get(handle)) ?? [];
    },
    items(subscription?: number): readonly Item[] {
      if (subscription !== undefined) return groups.get(subscription)?.items ?? [];
      return [...groups.values()].flatMap(({ items }) => items);
    },
    /** Items that the server can read but not monitor. */
    get polled(): readonly Item[] {
      return [...polled.keys()];
    },
    /** Numbers of items with a limitation. `unqueued`: a queue of one value, without reports of discarded ones. */
    get counts() {
      const sum = (count: "slowed" | "unfiltered" | "unqueued") =>
        [...groups.values()].reduce((all, group) => all + group[count], 0);
      return {
        crowdedOut: [...polled.values()].filter(Boolean).length,
        slowed: sum("slowed"),
        unfiltered: sum("unfiltered"),
        unqueued: sum("unqueued"),
      };
    },
    /** Marks the subscriptions as begun, once gaps from before them are recorded. */
    async begun(): Promise<void> {
      const fresh = [...groups.values()].filter(({ record }) => !record.begun);
      for (const group of fresh) group.record = { ...group.record, begun: true };
      if (fresh.length > 0) await save();
    },
    /**
     * Groups all items by possible losses since the previous connection. `kept`: none unreported; `brief`: values
     * discarded from a queue of one; `fresh`: any.
     */
    divided() {
      const monitored = [...groups.values()].flatMap((group) => group.divided());
      return [...monitored, [[...polled.keys()], "fresh"] as const];
    },
    queueOf(subscription: number, handle: number): Queue {
      return groups.get(subscription)?.queueOf(handle) ?? { size: 0, usual: 0 };
    },
    /**
     * Monitors the items, each in the subscription of its group. In a resumed subscription, monitored items that the
     * server still has are kept, and those that are no longer configured are deleted. A refused item becomes a failure and
     * does not affect others. Rejects with `SOURCE_*` if a call fails.
     */
    async begin(items: readonly Item[], unresolved: readonly Unresolved[], signal: AbortSignal): Promise<void> {
      failures.push(...unresolved.map((failure) => ({ ...failure, captures: {} })));
      for (const former of formers) formerItemsOf.set(former.id, formerItems(former.items, items));
      const parts = divide(items);
      for (const group of groups.values())
        await create(group, await group.restore(parts.get(group) ?? [], signal), signal);
    },
    async add(items: readonly Item[], signal: AbortSignal): Promise<MonitoringFailure[]> {
      const failed: MonitoringFailure[] = [];
      for (const [group, part] of divide(items)) failed.push(...(await create(group, part, signal)));
      return failed;
    },
    /** Tracks deleted nodes by the status of a value. */
    arrived(subscription: number, handle: number, status: NotifiedValue["statusCode"]): void {
      groups.get(subscription)?.arrived(handle, status);
    },
    /** Removes and returns the failures for a retry, and deletes the items of deleted nodes, which stay silent. */
    async takeFailures(signal: AbortSignal): Promise<MonitoringFailure[]> {
      for (const group of groups.values()) failures.push(...(await group.takeDeleted(signal)));
      return failures.splice(0);
    },
    /** Monitors and polls the items no more, since any answer with their values fails. They become failures. */
    async refuse(reasons: ReadonlyMap<Item, string>, signal: AbortSignal): Promise<void> {
      for (const group of groups.values()) await group.end(reasons, signal);
      for (const item of reasons.keys()) polled.delete(item);
      for (const each of reasons) failures.push({ ...monitoringFailure(...each), isUnreadable: true });
    },
    /** Removes and returns the items that the server monitors no more, although it continues the subscription. */
    async takeForgotten(signal: AbortSignal): Promise<Item[]> {
      const forgotten: Item[] = [];
      for (const group of groups.values()) forgotten.push(...(await group.takeForgotten(signal)));
      signal.throwIfAborted();
      return forgotten;
    },
    /** Removes and returns the items that are polled for lack of room, for a retry. */
    takeCrowdedOut(): Item[] {
      const taken = [...polled].flatMap(([item, isCrowdedOut]) => (isCrowdedOut ? item : []));
      for (const item of taken) polled.delete(item);
      return taken;
    },
    /** Removes one subscription, or all, from the record. Rejects like `Resumption.remember`. */
    forget(subscription?: number): Promise<void> {
      if (subscription === undefined) recorded.clear();
      else recorded.delete(subscription);
      return save();
    },
  };
}
