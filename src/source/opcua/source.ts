// One live connection to a server: what it notifies comes out as deliveries, what fails is tried again slowly.
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Delivery, Description, Reading, Source, TagId } from "../../core/source.ts";
import { isAbort } from "../../lib/abort.ts";
import { BoundedQueue } from "../../lib/bounded-queue.ts";
import { Backfill, type BackfillOptions } from "./backfill.ts";
import type { Item, Resolver, Tag } from "./items.ts";
import type { Link } from "./link.ts";
import { type Failure, failureReading, type Monitoring } from "./monitoring.ts";
import type { OpcuaConfig } from "./open.ts";
import type { Pki } from "./pki.ts";
import { type Notification, Publisher } from "./publisher.ts";
import { overflowed, toReading } from "./reading.ts";
import type { Resumption } from "./resumption.ts";
import { retryFailures } from "./retry.ts";
import type { Ua } from "./stack.ts";
import type { Counts, Subscription } from "./subscription.ts";

export interface OpcuaSourceOptions {
  readonly ua: Ua;
  readonly config: OpcuaConfig;
  readonly link: Link;
  readonly pki: Pki;
  readonly resumption: Resumption;
  readonly runtime: Runtime;
  readonly resolver: Resolver;
  readonly subscription: Subscription;
  readonly wanted: Counts;
  readonly monitoring: Monitoring;
  readonly descriptions: readonly Description[];
  /** Undefined: gaps are not filled. */
  readonly history: HistoryOptions | undefined;
  readonly tags: readonly (readonly [TagId, Tag])[];
  readonly details: Readonly<Record<string, string | number>>;
}

type HistoryOptions = Pick<BackfillOptions, "maxGapMs" | "memory">;

/** Readings that wait together for the pipeline. */
interface Batch {
  readonly readings: readonly Reading[];
  readonly descriptions: readonly Description[];
  /** To be called once they are on disk. */
  readonly stored?: (() => void) | undefined;
}

const batchReadings = 1_000;
const batchesPerDelivery = 10;
/** Batches that may wait before the server is asked for no more. */
const fullAt = 20;
const mostBatches = 1_000;
const overflows = {
  name: "opcua_overflows_total",
  help: "Times that a server threw values of a tag away because its queue was full.",
  labels: ["source"],
} as const;

export class OpcuaSource implements Source {
  readonly #options: OpcuaSourceOptions;
  readonly #queue = new BoundedQueue<Batch>(mostBatches);
  readonly #publisher: Publisher;
  readonly #backfill: Backfill | undefined;
  #roomier = Promise.withResolvers<void>();
  #overflows = 0;

  constructor(options: OpcuaSourceOptions) {
    this.#options = options;
    const { ua, link, runtime, config, subscription, resumption } = options;
    this.#publisher = new Publisher({
      ua,
      link,
      runtime,
      source: config.name,
      subscription,
      deliver: (notification) => this.#take(notification),
      room: (signal) => this.#room(signal),
      gone: (what) => resumption.remember({ [what]: undefined }),
    });
    this.#backfill =
      options.history &&
      new Backfill({
        ...options.history,
        ua,
        link,
        runtime,
        source: config.name,
        namespaces: options.resolver.namespaces,
        services: options.resolver.services,
        deliver: async (readings, stored, signal) => {
          await this.#room(signal);
          this.#putAll(readings, stored);
        },
      });
  }

  async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
    const stop = new AbortController();
    const running = AbortSignal.any([signal, stop.signal]);
    const { descriptions, monitoring, link } = this.#options;
    const fail = (error: unknown) => this.#queue.fail(error);
    const lost = () => fail(link.lost.reason);
    link.lost.addEventListener("abort", lost, { once: true });
    if (link.lost.aborted) lost();
    this.#put({ readings: this.#failureReadings(monitoring.failures), descriptions });
    const works = [
      this.#publisher.run(running),
      this.#tryAgain(running),
      ...(this.#backfill ? [this.#backfill.run(running)] : []),
    ];
    const background = works.map((work) => work.catch(fail));
    try {
      for (;;) {
        const batches = await this.#queue.takeAll(batchesPerDelivery, signal);
        this.#roomier.resolve();
        this.#roomier = Promise.withResolvers();
        yield this.#delivery(batches);
      }
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
      // What has arrived is still to be stored.
      while (this.#queue.size > 0)
        yield this.#delivery(await this.#queue.takeAll(batchesPerDelivery, new AbortController().signal));
    } finally {
      stop.abort();
      link.lost.removeEventListener("abort", lost);
      await Promise.all(background);
    }
  }

  details(): Readonly<Record<string, string | number>> {
    const { details, subscription, wanted, monitoring } = this.#options;
    const { publishingMs, keepAliveCount, lifetimeCount } = subscription;
    return {
      ...details,
      publishing: `${publishingMs} ms${publishingMs > wanted.publishingMs ? ` (asked for ${wanted.publishingMs} ms)` : ""}`,
      keepAlive: `${publishingMs * keepAliveCount} ms`,
      lifetime: `${publishingMs * lifetimeCount} ms`,
      subscription: subscription.origin,
      items: monitoring.items.length,
      failed: monitoring.failures.length,
      slowed: monitoring.slowed,
      overflows: this.#overflows,
    };
  }

  /** Ends the session. The subscription stays on the server, with what is not acknowledged, where the next connection can take it up. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { link, pki, resumption, runtime } = this.#options;
    await this.#backfill?.save().catch((error: unknown) => {
      runtime.log.warn({ err: error }, "how far values are stored cannot be written down");
    });
    // A session that is cut off stays in the record: the next connection takes it up instead of leaving it behind.
    if (link.lost.aborted) await link.close({ deleteSubscriptions: false });
    else {
      const keep = resumption.transferable;
      await link.close({ deleteSubscriptions: !keep });
      await resumption.remember({ session: undefined, ...(!keep && { subscription: undefined }) });
    }
    await pki[Symbol.asyncDispose]();
  }

  #delivery(batches: readonly Batch[]): Delivery {
    return {
      readings: batches.flatMap(({ readings }) => readings),
      descriptions: batches.flatMap(({ descriptions }) => descriptions),
      awaited: false,
      ack: () => {
        for (const { stored } of batches) stored?.();
      },
    };
  }

  async #room(signal: AbortSignal): Promise<void> {
    while (this.#queue.size >= fullAt) {
      const aborted = Promise.withResolvers<never>();
      const abort = () => aborted.reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      try {
        signal.throwIfAborted();
        await Promise.race([this.#roomier.promise, aborted.promise]);
      } finally {
        signal.removeEventListener("abort", abort);
      }
    }
  }

  #put(batch: Batch): void {
    if (!this.#queue.offer(batch) && this.#queue.size >= mostBatches)
      throw new AgentError("SOURCE_PROTOCOL", "the server sends more in one message than it was asked to");
  }

  #take({ subscription, sequenceNumber, changes }: Notification): void {
    const { runtime, config, monitoring } = this.#options;
    const backfill = this.#backfill;
    const arrival = runtime.clock.now();
    const handedOver = subscription !== this.#options.subscription.id;
    const stream = handedOver ? "former" : this.#options.subscription.origin === "kept" ? "kept" : "new";
    const readings: Reading[] = [];
    const stamped: (readonly [Item, Reading])[] = [];
    let overflowing = 0;
    for (const { handle, value } of changes) {
      const item = monitoring.item(handle);
      if (!item) continue;
      const overflow = overflowed(value.statusCode.value);
      if (overflow) overflowing++;
      const reading = toReading(value, item, arrival, config.options.time);
      if (!reading) continue;
      // What a former subscription hands over may be older than what has come from the new one.
      readings.push(handedOver ? { ...reading, historical: true } : reading);
      if (!backfill || reading.clock !== "device") continue;
      backfill.arrived(item, reading.time, { overflow, stream });
      stamped.push([item, reading]);
    }
    if (overflowing > 0) {
      this.#overflows += overflowing;
      runtime.metrics.counter(overflows).add(overflowing, { source: config.name });
    }
    this.#putAll(readings, () => {
      this.#publisher.acknowledge({ subscription, sequenceNumber });
      for (const [item, { time }] of stamped) backfill?.stored(item, time);
    });
  }

  /** `stored` goes with the last of them: batches are acknowledged in order. */
  #putAll(readings: readonly Reading[], stored: () => void): void {
    let from = 0;
    for (; readings.length - from > batchReadings; from += batchReadings)
      this.#put({ readings: readings.slice(from, from + batchReadings), descriptions: [] });
    this.#put({ readings: from > 0 ? readings.slice(from) : readings, descriptions: [], stored });
  }

  #failureReadings(failures: readonly Failure[]): Reading[] {
    const now = this.#options.runtime.clock.now();
    return failures.map((failure) => failureReading(failure, now));
  }

  #tryAgain(signal: AbortSignal): Promise<never> {
    const { runtime, tags, resolver, monitoring } = this.#options;
    const failed = (failures: readonly Failure[]) =>
      this.#put({ readings: this.#failureReadings(failures), descriptions: [] });
    return retryFailures({ tags, resolver, monitoring, failed }, runtime, signal);
  }
}
