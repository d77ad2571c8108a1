// One live connection to a server. Turns notifications into deliveries and retries failed items slowly.

import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Recovery, Source } from "../../../core/source.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import type { Pki } from "../certificates/pki.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { type Backfill, type BackfillOptions, openBackfill } from "../history/backfill.ts";
import type { HistoryMemory } from "../history/history-memory.ts";
import { poll, rereader } from "../monitoring/polling.ts";
import { failureReading, type MonitoringFailure, refusedNodes } from "../monitoring/refused-nodes.ts";
import { openAgain, pollingAdvice, type RetryOptions, retryFailures, unreadableNodes } from "../monitoring/retry.ts";
import { describing } from "../nodes/description.ts";
import type { Item } from "../nodes/items.ts";
import { type Notification, unreportedOverflows } from "../publishing/notification.ts";
import { openPublisher } from "../publishing/publisher.ts";
import { subscriptionDetails } from "../publishing/publishing-group.ts";
import { type Obtaining, shrinkMessages } from "../publishing/subscription.ts";
import { sessionKeepAlive } from "../session/server-facts.ts";
import { type DataValueLike, type NotifiedValue, semanticsChanged, structureChanged } from "../types/reading.ts";
import { notificationQueue } from "./notification-queue.ts";

export interface OpcuaSourceOptions
  extends Pick<Obtaining, "link" | "resumption" | "positions">,
    Pick<RetryOptions, "tags" | "resolver" | "monitoring"> {
  readonly config: OpcuaConfig;
  readonly pki: Pki;
  /** See `overflowWeakness`. */
  readonly hidesOverflows: boolean;
  readonly runtime: Runtime;
  /** All subscriptions of the server are taken. A reconnect after some minutes may get one. */
  readonly lacksSubscription: boolean;
  readonly history: Pick<BackfillOptions, "maxGapMs" | "memory" | "serverStarted" | "limit">;
  /** Resolved items, in the order of the configuration, then of the server's answers. */
  readonly items: readonly Item[];
  readonly details: Readonly<Record<string, string | number>>;
}

/** Publishing intervals up to this length end before the rereader first reads. */
const soonMs = 1_000;
/** Most readings to queue before there is room again. */
const mostAtOnce = 10_000;
/** How long the first values wait for the descriptions of their variables. */
const describedWithinMs = 5_000;

export type OpcuaSource = ReturnType<typeof opcuaSource>;

export function opcuaSource(options: OpcuaSourceOptions) {
  const { config, link, runtime, monitoring, positions, resumption, resolver, history, tags, lacksSubscription } =
    options;
  const { services, structures, namespaces } = resolver;
  const { subscriptions, formers } = monitoring;
  const { time } = config.options;
  const common = { link, runtime, services, source: config.name };
  const notifications = notificationQueue(runtime, { source: config.name, time });
  const descriptions = describing(services, runtime, (each) => notifications.descriptions(each));
  const keepAlive = sessionKeepAlive(link, services, runtime);
  /** New subscriptions without a notification so far. The first is due after one publishing interval. */
  const awaitingFirst = new Set<number>();

  const polled = async (read: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal) => {
    await notifications.room(signal);
    await unreadable.examine(read, signal);
    await structures.learn(read, signal);
    const [items, values] = [read.map(([item]) => item), read.map(([, value]) => value)];
    notifications.values({ items, values }, "live", backfill, () => {});
  };
  const reading = {
    services,
    runtime,
    deliver: polled,
    alive: (every: number, items: readonly Item[]) => notifications.alive(`polled ${every}`, () => items),
  };
  const reread = rereader(reading);
  let most: number | undefined;
  const unreadable = unreadableNodes({
    monitoring,
    log: runtime.log,
    reread: (items) => {
      awaitingFirst.clear();
      reread.add(items);
    },
    refused: (items) => reread.arrived(items),
    shrink: async (signal) => {
      most = await shrinkMessages(link, subscriptions, signal, most);
    },
  });

  const backfill: Backfill = openBackfill({
    ...common,
    ...history,
    namespaces,
    structures,
    time,
    deliver: async (readings, gaps, stored, signal) => {
      await notifications.room(signal);
      notifications.readings(readings, stored, gaps);
    },
  });

  const take = async ({ subscription: id, sequenceNumber, changes, old }: Notification, signal: AbortSignal) => {
    const subscription = subscriptions.find((each) => each.id === id);
    const queueOf = (handle: number) => monitoring.queueOf(id, handle);
    const marked = unreportedOverflows(changes, queueOf, options.hidesOverflows);
    const unreported = new Set(Array.from(marked, ({ value }) => value));
    const items: Item[] = [];
    const values: NotifiedValue[] = [];
    const structured: (readonly [Item, NotifiedValue])[] = [];
    let statuses = 0;
    for (const { handle, value } of changes) {
      const sharing = monitoring.sharing(id, handle);
      if (sharing.length === 0) continue;
      if (!old) monitoring.arrived(id, handle, value.statusCode);
      for (const item of sharing) {
        items.push(item);
        values.push(value);
        if (item.field) structured.push([item, value]);
      }
      statuses |= value.statusCode.value;
    }
    if (structureChanged(statuses)) structures.forget();
    if (semanticsChanged(statuses))
      descriptions.add(items.filter((_, i) => semanticsChanged(values[i]?.statusCode.value ?? 0)));
    reread.arrived(awaitingFirst.delete(id) ? monitoring.items(id) : items);
    await structures.learn(structured, signal);
    const acknowledge = async () => {
      // The order matters: values that the server has discarded must not count as missing.
      if (subscription) await positions.reached(subscription, sequenceNumber);
      publisher?.acknowledge({ subscription: id, sequenceNumber });
    };
    const stream = subscription && !old ? "live" : "former";
    // A value of an array is a reading of each tag that takes an element of it.
    while (values.length > mostAtOnce) {
      const part = { items: items.splice(0, mostAtOnce), values: values.splice(0, mostAtOnce), unreported };
      notifications.values(part, stream, backfill, () => {});
      await notifications.room(signal);
    }
    notifications.values({ items, values, unreported }, stream, backfill, () =>
      backfill.remembered(() => void acknowledge()),
    );
  };

  const publisher =
    subscriptions.length === 0
      ? undefined
      : openPublisher({
          ...common,
          subscriptions: subscriptions.map((each) => ({ ...each, lags: positions.lags(each) })),
          formers,
          deliver: take,
          alive: (id) => notifications.alive(id, () => monitoring.items(id)),
          unreadable: (error) => unreadable.message(error),
          room: (signal) => notifications.room(signal),
          lost: (id) => {
            const items = monitoring.items(id);
            // The next message may be the second one, without the first value of each item.
            awaitingFirst.delete(id);
            notifications.readings([], undefined, backfill.missed(items));
            reread.add(items);
          },
          gone: (what) =>
            what === "session"
              ? resumption.remember({ session: undefined })
              : monitoring.forget(what === "subscriptions" ? undefined : what),
        });

  /** Gaps of earlier connections that can still be filled. */
  const leftOver = monitoring.divided().flatMap(([items, state]) => backfill.begin(items, state));
  const kept = subscriptions.length > 0 && subscriptions.every(({ origin }) => origin === "kept");
  const recovery = recoveryOf(kept, history.memory);

  const reportFailures = (failures: readonly MonitoringFailure[]) => {
    const now = runtime.clock.now();
    if (failures.length > 0) notifications.readings(failures.map((failure) => failureReading(failure, now)));
  };

  /** Descriptions precede values, unless the server is slow. */
  const describe = async (signal: AbortSignal) => {
    descriptions.add([...monitoring.items(), ...monitoring.polled]);
    const patience = runtime.clock.sleep(describedWithinMs, signal).catch(() => {});
    await Promise.race([descriptions.round(signal), patience]);
  };

  /** Runs all background tasks. A failed task ends the deliveries. Resolves when all tasks have ended. */
  const work = async (signal: AbortSignal) => {
    const added = (items: readonly Item[]) => {
      descriptions.add(items);
      if (items.length > 0) notifications.forgetItems();
    };
    const forgotten = (items: readonly Item[]) => {
      runtime.log.error({ items: items.length }, "the server has lost monitored items; they are created again");
      backfill.interrupted(items);
    };
    const works = [
      publisher?.run(signal),
      retryFailures({ tags, resolver, monitoring, forgotten, added, failed: reportFailures }, runtime, signal),
      descriptions.run(signal),
      reread.run(signal),
      poll(reading, () => monitoring.polled, signal),
      backfill.run(signal),
      keepAlive.run(signal),
      lacksSubscription ? openAgain(runtime, signal) : undefined,
    ];
    const running = works.filter((each) => each !== undefined);
    await Promise.all(running.map((each) => each.catch((error: unknown) => notifications.fail(error))));
  };

  return {
    get retainedBy() {
      // What is polled is kept nowhere. With a queue of one, the server keeps only the last value.
      return monitoring.polled.length === 0 && monitoring.counts.unqueued === 0 ? "the server" : undefined;
    },
    recovery,
    addresses: options.items,
    async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
      const stop = new AbortController();
      const lost = () => notifications.fail(link.lost.reason);
      link.lost.addEventListener("abort", lost, { once: true });
      if (link.lost.aborted) lost();
      const running = AbortSignal.any([signal, stop.signal, link.lost]);
      // Save the gaps first. After a crash, the subscription would otherwise resume as if nothing were missing.
      if (await backfill.save()) await monitoring.begun();
      await describe(running);
      reportFailures(monitoring.failures);
      if (leftOver.length > 0) notifications.readings([], undefined, leftOver);
      // Some servers send the first values in reply to a Publish request of the previous connection.
      for (const { id, origin, publishingMs } of subscriptions)
        if (origin !== "kept" && publishingMs <= soonMs) {
          awaitingFirst.add(id);
          reread.add(monitoring.items(id));
        }
      const background = work(AbortSignal.any([signal, stop.signal]));
      try {
        for (;;) yield await notifications.next(signal);
      } catch (error) {
        if (!isAbort(error, signal)) throw error;
        // Deliver what has arrived before the abort.
        yield* notifications.rest();
      } finally {
        stop.abort();
        link.lost.removeEventListener("abort", lost);
        await background;
      }
    },
    check: (signal) =>
      refusedNodes(
        {
          ...resolver,
          tags: config.tags,
          items: options.items,
          failures: monitoring.failures,
          url: config.options.url,
        },
        signal,
      ),
    details(): Readonly<Record<string, string | number>> {
      const { slowed, unfiltered, unqueued } = monitoring.counts;
      const advice = [options.details["advice"], pollingAdvice(monitoring, lacksSubscription)].filter(
        (part) => part !== undefined,
      );
      return {
        ...options.details,
        ...(advice.length > 0 && { advice: advice.join("; ") }),
        ...(subscriptions[0] && subscriptionDetails(subscriptions)),
        items: monitoring.items().length,
        polled: monitoring.polled.length,
        failed: monitoring.failures.length,
        slowed,
        ...(unfiltered > 0 && { unfiltered }),
        ...(unqueued > 0 && { unqueued }),
        ...(keepAlive.state !== undefined && { "server state": keepAlive.state }),
        overflows: notifications.overflows,
      };
    },
    /** Keeps the session on the server for the next connection, or closes it if none follows. */
    async [Symbol.asyncDispose]() {
      await backfill.save();
      await positions[Symbol.asyncDispose]();
      await history.memory[Symbol.asyncDispose]();
      if (config.final?.()) {
        await link.close();
        await resumption.remember({ session: undefined, subscriptions: [] });
      } else await link.hangUp();
      await options.pki[Symbol.asyncDispose]();
    },
  } satisfies Source;
}

/** Undefined: no earlier connection has left the times of its last values, so no gap of a tag can be found. */
function recoveryOf(kept: boolean, memory: Pick<HistoryMemory, "gaps" | "isEmpty">): Recovery | undefined {
  if (kept && memory.gaps === 0) return { how: "kept", by: "the server had kept the subscription" };
  return memory.isEmpty ? undefined : { how: "history" };
}
