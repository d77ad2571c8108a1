// Where values become readings and wait for the pipeline: at most so many, in batches that are acknowledged in order.
import { AgentError } from "../../../core/errors.ts";
import type { TagGap } from "../../../core/gap.ts";
import type { EpochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Description, Reading } from "../../../core/source.ts";
import { orAbort } from "../../../lib/abort.ts";
import { BoundedQueue } from "../../../lib/bounded-queue.ts";
import type { Arrival, Backfill } from "../history/backfill.ts";
import type { Item } from "../nodes/items.ts";
import { type NotifiedValue, overflowed, type TimeOptions, toReading } from "../types/reading.ts";

/** Readings that wait together for the pipeline. */
interface Batch {
  readonly readings: readonly Reading[];
  readonly descriptions: readonly Description[];
  /** What is known of missing values, behind these readings. */
  readonly gaps?: readonly TagGap[] | undefined;
  /** To be called once they are on disk. */
  readonly stored?: (() => void) | undefined;
  /** What came before these is all there was to tell. */
  readonly alive?: boolean;
}

const batchReadings = 1_000;
const batchesPerDelivery = 10;
/** Batches that may wait before the server is asked for no more. */
const fullAt = 20;
const mostBatches = 1_000;
const overflows = {
  name: "source_opcua_overflows_total",
  help: "Times that a server threw values of a tag away because its queue was full.",
  labels: ["source"],
} as const;
const untimed = {
  name: "source_opcua_untimed_values_total",
  help: "Values without a usable time that were not stored, as unusable: drop says.",
  labels: ["source"],
} as const;

export class NotificationQueue {
  readonly #runtime: Runtime;
  readonly #source: string;
  readonly #time: TimeOptions;
  readonly #queue = new BoundedQueue<Batch>(mostBatches);
  #roomier = Promise.withResolvers<void>();
  #overflows = 0;

  constructor(runtime: Runtime, options: { readonly source: string; readonly time: TimeOptions }) {
    this.#runtime = runtime;
    this.#source = options.source;
    this.#time = options.time;
  }

  get overflows(): number {
    return this.#overflows;
  }

  /**
   * Takes values over, each with whether others may have been thrown away before it unsaid. `stored` is called once they are
   * on disk. Throws `SOURCE_PROTOCOL` when it is more than can wait.
   */
  values(
    values: Iterable<readonly [Item, NotifiedValue, unsaid?: boolean]>,
    stream: Arrival["stream"],
    backfill: Backfill | undefined,
    stored: () => void,
  ): void {
    const arrival = this.#runtime.clock.now();
    const readings: Reading[] = [];
    const stamped: Item[] = [];
    const times: EpochMicros[] = [];
    const gaps: TagGap[] = [];
    const come = { overflow: false, stream, at: arrival };
    const cut = { ...come, overflow: true };
    let overflowing = 0;
    let untimedValues = 0;
    for (const [item, value, unsaid = false] of values) {
      const overflow = unsaid || overflowed(value.statusCode.value);
      if (overflow) overflowing++;
      const reading = toReading(value, item, arrival, this.#time);
      if (reading === "untimed") untimedValues++;
      if (!reading || reading === "untimed") continue;
      // What a former subscription hands over may be older than what has come from the new one.
      readings.push(stream === "former" ? { ...reading, historical: true } : reading);
      if (!backfill) continue;
      const timed = reading.clock === "device";
      const how = overflow ? cut : come;
      const before = timed ? backfill.arrived(item, reading.time, how) : backfill.untimed(item, arrival, how);
      if (before.length > 0) gaps.push(...before);
      if (!timed) continue;
      stamped.push(item);
      times.push(reading.time);
    }
    if (overflowing > 0) {
      this.#overflows += overflowing;
      this.#runtime.metrics.counter(overflows).add(overflowing, { source: this.#source });
    }
    if (untimedValues > 0) this.#runtime.metrics.counter(untimed).add(untimedValues, { source: this.#source });
    this.readings(
      readings,
      () => {
        let i = 0;
        for (const item of stamped) backfill?.stored(item, times[i++] ?? arrival);
        stored();
      },
      gaps,
    );
  }

  /** Takes readings over; `stored` and `gaps` go with the last of them. Throws as `values` does. */
  readings(readings: readonly Reading[], stored?: () => void, gaps?: readonly TagGap[]): void {
    let from = 0;
    for (; readings.length - from > batchReadings; from += batchReadings)
      this.#put({ readings: readings.slice(from, from + batchReadings), descriptions: [] });
    this.#put({ readings: from > 0 ? readings.slice(from) : readings, descriptions: [], stored, gaps });
  }

  descriptions(descriptions: readonly Description[]): void {
    this.#put({ readings: [], descriptions });
  }

  /** The server has nothing to tell. Not worth telling where values wait. */
  alive(): void {
    if (this.#queue.size < fullAt) this.#put({ readings: [], descriptions: [], alive: true });
  }

  /** No more will come: what waits is still handed out, then `next` rejects with `error`. */
  fail(error: unknown): void {
    this.#queue.fail(error);
  }

  /** Resolves with what waits, at least something and at most 10,000 readings. Rejects with `signal.reason` or as `fail` says. */
  async next(signal: AbortSignal): Promise<Delivery> {
    const batches = await this.#queue.takeAll(batchesPerDelivery, signal);
    this.#roomier.resolve();
    this.#roomier = Promise.withResolvers();
    return {
      readings: batches.flatMap(({ readings }) => readings),
      descriptions: batches.flatMap(({ descriptions }) => descriptions),
      gaps: batches.flatMap(({ gaps }) => gaps ?? []),
      ...(batches.some(({ alive }) => alive) && { alive: true }),
      awaited: false,
      ack: () => {
        for (const { stored } of batches) stored?.();
      },
    };
  }

  /** What waits now, without waiting for more. */
  async *rest(): AsyncGenerator<Delivery> {
    while (this.#queue.size > 0) yield await this.next(new AbortController().signal);
  }

  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#queue.size >= fullAt) await orAbort(this.#roomier.promise, signal);
  }

  #put(batch: Batch): void {
    if (!this.#queue.offer(batch) && this.#queue.size >= mostBatches)
      throw new AgentError("SOURCE_PROTOCOL", "the server sends more in one message than it was asked to");
  }
}
