// One live connection to a server: what it notifies comes out as deliveries, what fails is tried again slowly.
import type { Recovery, TagGap } from "../../../core/gap.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, FoundAddress, Source, SourceCheck, TagId } from "../../../core/source.ts";
import { isAbort } from "../../../lib/abort.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { Backfill, type BackfillOptions } from "../history/backfill.ts";
import { failureReading, type Monitoring, type MonitoringFailure } from "../monitoring/monitoring.ts";
import { type Notification, unreportedOverflows } from "../monitoring/notification.ts";
import { poll, type ReadingOptions, Reread } from "../monitoring/polling.ts";
import type { Positions } from "../monitoring/positions.ts";
import { Publisher } from "../monitoring/publisher.ts";
import { subscriptionDetails } from "../monitoring/publishing-group.ts";
import { refusedNodes } from "../monitoring/refused-nodes.ts";
import { openAgain, pollingAdvice, retryFailures } from "../monitoring/retry.ts";
import { Describing } from "../nodes/description.ts";
import type { Item, Resolver, Tag } from "../nodes/items.ts";
import type { Link } from "../session/link.ts";
import type { Pki } from "../session/pki.ts";
import type { Resumption } from "../session/resumption.ts";
import { type ServerProfile, SessionKeeper } from "../session/server-facts.ts";
import { type DataValueLike, type NotifiedValue, semanticsChanged, structureChanged } from "../types/reading.ts";
import { NotificationQueue } from "./notification-queue.ts";

export interface OpcuaSourceOptions {
  readonly config: OpcuaConfig;
  readonly link: Link;
  readonly pki: Pki;
  readonly resumption: Resumption;
  readonly positions: Positions;
  /** Weaknesses of the server's product. */
  readonly profile: ServerProfile | undefined;
  readonly runtime: Runtime;
  readonly resolver: Resolver;
  readonly monitoring: Monitoring;
  /** After some minutes another connection may be better off than this one. */
  readonly openAgain: boolean;
  readonly history: HistoryOptions;
  readonly tags: readonly (readonly [TagId, Tag])[];
  /** What they lead to, in the order of the configuration and of the server's answers. */
  readonly items: readonly Item[];
  readonly details: Readonly<Record<string, string | number>>;
}

type HistoryOptions = Pick<BackfillOptions, "maxGapMs" | "memory" | "serverStarted" | "limit">;

export class OpcuaSource implements Source {
  readonly holder = "the server";
  readonly recovery: Recovery;
  readonly addresses: readonly FoundAddress[];
  readonly #options: OpcuaSourceOptions;
  readonly #notifications: NotificationQueue;
  readonly #publisher: Publisher | undefined;
  readonly #backfill: Backfill;
  readonly #describing: Describing;
  readonly #reading: ReadingOptions;
  readonly #reread: Reread;
  /** New subscriptions of which nothing has come, though the first values are due with the first publishing interval. */
  readonly #unheard = new Set<number>();
  readonly #keeper: SessionKeeper;
  /** Gaps of earlier connections that are looked for again. */
  readonly #leftOver: readonly TagGap[];

  constructor(options: OpcuaSourceOptions) {
    this.#options = options;
    this.addresses = options.items;
    const { link, runtime, config, monitoring, resumption, resolver } = options;
    const { subscriptions, formers } = monitoring;
    this.#notifications = new NotificationQueue(runtime, { source: config.name, time: config.options.time });
    this.#publisher =
      subscriptions[0] &&
      new Publisher({
        link,
        runtime,
        source: config.name,
        subscriptions,
        formers,
        deliver: (notification, signal) => this.#take(notification, signal),
        alive: () => this.#notifications.alive(),
        room: (signal) => this.#notifications.room(signal),
        lost: (id) => {
          const items = monitoring.items(id);
          this.#notifications.readings([], undefined, this.#backfill.missed(items));
          this.#reread.add(items);
        },
        gone: (what) =>
          what === "session"
            ? resumption.remember({ session: undefined })
            : monitoring.forget(what === "subscriptions" ? undefined : what),
      });
    const { services } = resolver;
    this.#reading = { services, runtime, deliver: (values, signal) => this.#polled(values, signal) };
    this.#reread = new Reread(this.#reading);
    this.#describing = new Describing({ runtime, services, deliver: (each) => this.#notifications.descriptions(each) });
    this.#backfill = new Backfill({
      ...options.history,
      link,
      runtime,
      source: config.name,
      namespaces: resolver.namespaces,
      services,
      structures: resolver.structures,
      time: config.options.time,
      deliver: async (readings, gaps, stored, signal) => {
        await this.#notifications.room(signal);
        this.#notifications.readings(readings, stored, gaps);
      },
    });
    this.#keeper = new SessionKeeper({ link, services, runtime });
    this.#leftOver = [...monitoring.divided()].flatMap(([items, state]) => this.#backfill.begin(items, state));
    const kept = subscriptions.length > 0 && subscriptions.every(({ origin }) => origin === "kept");
    this.recovery =
      kept && options.history.memory.gaps === 0
        ? { how: "kept", by: "the server had kept the subscription" }
        : { how: "history" };
  }

  async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
    const stop = new AbortController();
    const { monitoring, link } = this.#options;
    const lost = () => this.#notifications.fail(link.lost.reason);
    link.lost.addEventListener("abort", lost, { once: true });
    if (link.lost.aborted) lost();
    const running = AbortSignal.any([signal, stop.signal, link.lost]);
    // Before the first value: were the agent killed, the subscription would be gone on with as if nothing were missing.
    if (await this.#backfill.save()) await monitoring.begun();
    await this.#describe(running);
    this.#tell(monitoring.failures);
    if (this.#leftOver.length > 0) this.#notifications.readings([], undefined, this.#leftOver);
    // Servers were seen that send the first values in answer to a request of the connection before.
    for (const { id, origin, publishingMs } of monitoring.subscriptions)
      if (origin !== "kept" && publishingMs <= soonMs) {
        this.#unheard.add(id);
        this.#reread.add(monitoring.items(id));
      }
    const background = this.#work(AbortSignal.any([signal, stop.signal]));
    try {
      for (;;) yield await this.#notifications.next(signal);
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
      // What has arrived is still to be stored.
      yield* this.#notifications.rest();
    } finally {
      stop.abort();
      link.lost.removeEventListener("abort", lost);
      await background;
    }
  }

  /** What a variable is comes before its values, unless the server takes its time. */
  async #describe(signal: AbortSignal): Promise<void> {
    const { monitoring, runtime } = this.#options;
    this.#describing.add([...monitoring.items(), ...monitoring.polled]);
    const patience = runtime.clock.sleep(describedWithinMs, signal).catch(() => {});
    await Promise.race([this.#describing.round(signal), patience]);
  }

  async check(signal: AbortSignal): Promise<SourceCheck> {
    const { config, resolver, items, monitoring } = this.#options;
    const { tags, options } = config;
    return await refusedNodes({ ...resolver, tags, items, failures: monitoring.failures, url: options.url }, signal);
  }

  details(): Readonly<Record<string, string | number>> {
    const { details, monitoring, openAgain } = this.#options;
    const { slowed, unfiltered, unqueued } = monitoring.counts;
    const advice = [details["advice"], pollingAdvice(monitoring, openAgain)].filter((part) => part !== undefined);
    return {
      ...details,
      ...(advice.length > 0 && { advice: advice.join("; ") }),
      ...(monitoring.subscriptions[0] && subscriptionDetails(monitoring.subscriptions)),
      items: monitoring.items().length,
      polled: monitoring.polled.length,
      failed: monitoring.failures.length,
      slowed,
      ...(unfiltered > 0 && { unfiltered }),
      ...(unqueued > 0 && { unqueued }),
      ...(this.#keeper.state !== undefined && { "server state": this.#keeper.state }),
      overflows: this.#notifications.overflows,
    };
  }

  /**
   * Leaves the session on the server, which goes on filling its queues: the next connection, after a restart or an upgrade as
   * well, takes it up. Where none follows the session is closed and its subscriptions are deleted.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const { config, history, link, pki, positions, resumption } = this.#options;
    await this.#backfill.save();
    await positions[Symbol.asyncDispose]();
    await history.memory[Symbol.asyncDispose]();
    // Beside an agent that runs on the same folder nobody takes this session up.
    if (config.final?.() || resumption.guest) {
      await link.close();
      await resumption.remember({ session: undefined, subscriptions: [] });
    } else await link.hangUp();
    await pki[Symbol.asyncDispose]();
  }

  /** All that goes on beside the deliveries; what fails ends them. Resolves when all of it has ended. */
  async #work(signal: AbortSignal): Promise<void> {
    const { runtime, tags, resolver, monitoring } = this.#options;
    const works = [
      this.#publisher?.run(signal),
      retryFailures(
        {
          tags,
          resolver,
          monitoring,
          added: (items) => {
            this.#describing.add(items);
            if (items.length > 0) this.#notifications.forgetItems();
          },
          failed: (failures) => this.#tell(failures),
        },
        runtime,
        signal,
      ),
      this.#describing.run(signal),
      this.#reread.run(signal),
      poll(this.#reading, () => monitoring.polled, signal),
      this.#backfill.run(signal),
      this.#keeper.run(signal),
      this.#options.openAgain ? openAgain(runtime, signal) : undefined,
    ];
    const running = works.filter((work) => work !== undefined);
    await Promise.all(running.map((work) => work.catch((error: unknown) => this.#notifications.fail(error))));
  }

  async #take({ subscription: id, sequenceNumber, changes, old }: Notification, signal: AbortSignal): Promise<void> {
    const { monitoring, positions, profile, resolver } = this.#options;
    const subscription = monitoring.subscriptions.find((each) => each.id === id);
    const queueOf = (handle: number) => monitoring.queueOf(id, handle);
    const marked = unreportedOverflows(changes, queueOf, profile?.overflowUntold);
    const unreported = new Set(Array.from(marked, ({ value }) => value));
    const items: Item[] = [];
    const values: NotifiedValue[] = [];
    const structured: (readonly [Item, NotifiedValue])[] = [];
    let statuses = 0;
    for (const { handle, value } of changes) {
      const item = monitoring.item(id, handle);
      if (!item) continue;
      if (!old) monitoring.arrived(id, handle, value.statusCode);
      items.push(item);
      values.push(value);
      if (item.field) structured.push([item, value]);
      statuses |= value.statusCode.value;
    }
    if (structureChanged(statuses)) resolver.structures.forget();
    if (semanticsChanged(statuses))
      this.#describing.add(items.filter((_, i) => semanticsChanged(values[i]?.statusCode.value ?? 0)));
    this.#reread.arrived(this.#unheard.delete(id) ? monitoring.items(id) : items);
    await resolver.structures.learn(structured, signal);
    const acknowledge = async () => {
      // In this order: what the server has thrown away nobody must take for missing.
      if (subscription) await positions.reached(subscription, sequenceNumber);
      this.#publisher?.acknowledge({ subscription: id, sequenceNumber });
    };
    const stream = subscription && !old ? "live" : "former";
    this.#notifications.values({ items, values, unreported }, stream, this.#backfill, () =>
      this.#backfill.remembered(() => void acknowledge()),
    );
  }

  async #polled(read: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal): Promise<void> {
    await this.#notifications.room(signal);
    await this.#options.resolver.structures.learn(read, signal);
    const [items, values] = [read.map(([item]) => item), read.map(([, value]) => value)];
    this.#notifications.values({ items, values }, "live", this.#backfill, () => {});
  }

  #tell(failures: readonly MonitoringFailure[]): void {
    if (failures.length === 0) return;
    const now = this.#options.runtime.clock.now();
    this.#notifications.readings(failures.map((failure) => failureReading(failure, now)));
  }
}

/** Publishing intervals of which the first is over before `Reread` reads. */
const soonMs = 1_000;
/** How long values wait for the descriptions of what they are of. */
const describedWithinMs = 5_000;
