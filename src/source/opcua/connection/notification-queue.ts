// Where values become readings and wait for the pipeline: at most so many, in batches that are acknowledged in order.
import { AgentError } from "../../../core/errors.ts";
import type { TagGap } from "../../../core/gap.ts";
import { epochMicros } from "../../../core/point.ts";
import type { ReadingBatch } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Description, Reading } from "../../../core/source.ts";
import { orAbort } from "../../../lib/abort.ts";
import { BoundedQueue } from "../../../lib/bounded-queue.ts";
import { batchDelivery, batchOf } from "../../../lib/reading-batch.ts";
import type { Arrival, Backfill } from "../history/backfill.ts";
import type { Item } from "../nodes/items.ts";
import { PlainNumber } from "../types/plain-value.ts";
import { type NotifiedValue, numberReading, overflowed, type TimeOptions, toReading } from "../types/reading.ts";
import { ReadingColumns } from "./reading-columns.ts";

/** Readings that wait together for the pipeline. */
interface Batch {
  readonly readings?: ReadingBatch;
  readonly descriptions?: readonly Description[];
  /** What is known of missing values, behind these readings. */
  readonly gaps?: readonly TagGap[] | undefined;
  /** To be called once they are on disk. */
  readonly stored?: (() => void) | undefined;
  /** What came before these is all there was to tell. */
  readonly alive?: true;
}

interface ItemValues {
  readonly items: readonly Item[];
  /** By the index in `items`. */
  readonly values: readonly NotifiedValue[];
  readonly unreported?: ReadonlySet<NotifiedValue>;
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
  /** Items in the order in which their first values came. */
  #places: Item[] = [];
  #rows = new Map<Item, number>();
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
   * Takes the values of the items at the same index over; before `unreported` ones others may have been thrown away. `stored` is called
   * once they are on disk. Throws `SOURCE_PROTOCOL` when it is more than can wait.
   */
  values(
    { items, values, unreported }: ItemValues,
    stream: Arrival["stream"],
    backfill: Pick<Backfill, "arrived" | "untimed" | "stored">,
    stored: () => void,
  ): void {
    const arrival = this.#runtime.clock.now();
    const newColumns = () => new ReadingColumns(this.#places, Math.min(batchReadings, values.length));
    let columns = newColumns();
    const stamped: Item[] = [];
    const times = new Float64Array(values.length);
    const gaps: TagGap[] = [];
    const come = { overflow: false, stream, at: arrival };
    const cut = { ...come, overflow: true };
    let overflowing = 0;
    let untimedValues = 0;
    for (let i = 0; i < values.length; i++) {
      const [item, value] = [items[i], values[i]];
      if (!item || !value) continue;
      const overflow = unreported?.has(value) || overflowed(value.statusCode.value);
      if (overflow) overflowing++;
      const isWhole = value instanceof PlainNumber && !item.part && !item.index && stream === "live";
      const reading = isWhole
        ? numberReading(value, item, arrival, this.#time)
        : toReading(value, item, arrival, this.#time);
      if (reading === "untimed") untimedValues++;
      if (!reading || reading === "untimed") continue;
      // What a former subscription hands over may be older than what has come from the new one.
      if (columns.isFull) {
        this.#put({ readings: columns.batch() });
        columns = newColumns();
      }
      const row = this.#rowOf(item);
      if (typeof reading !== "number")
        columns.add(row, stream === "former" ? { ...reading, historical: true } : reading);
      else if (value instanceof PlainNumber) columns.addNumber(row, value.number, reading);
      const time = typeof reading === "number" ? reading : reading.clock === "device" ? reading.time : undefined;
      const how = overflow ? cut : come;
      const before = time === undefined ? backfill.untimed(item, arrival, how) : backfill.arrived(item, time, how);
      if (before.length > 0) gaps.push(...before);
      if (time !== undefined) times[stamped.push(item) - 1] = time;
    }
    if (overflowing > 0) {
      this.#overflows += overflowing;
      this.#runtime.metrics.counter(overflows).add(overflowing, { source: this.#source });
    }
    if (untimedValues > 0) this.#runtime.metrics.counter(untimed).add(untimedValues, { source: this.#source });
    const allStored = () => {
      let i = 0;
      for (const item of stamped) backfill.stored(item, epochMicros(times[i++] ?? arrival));
      stored();
    };
    this.#put({ readings: columns.batch(), stored: allStored, gaps });
  }

  #rowOf(item: Item): number {
    let row = this.#rows.get(item);
    if (row === undefined) this.#rows.set(item, (row = this.#places.push(item) - 1));
    return row;
  }

  /** To be called when items are added: others may be gone, and would be kept as long as the connection lives. */
  forgetItems(): void {
    this.#places = [];
    this.#rows = new Map();
  }

  /** Takes readings over; `stored` and `gaps` go with the last of them. Throws as `values` does. */
  readings(readings: readonly Reading[], stored?: () => void, gaps?: readonly TagGap[]): void {
    let from = 0;
    for (; readings.length - from > batchReadings; from += batchReadings)
      this.#put({ readings: batchOf(readings.slice(from, from + batchReadings)) });
    this.#put({ readings: batchOf(from > 0 ? readings.slice(from) : readings), stored, gaps });
  }

  descriptions(descriptions: readonly Description[]): void {
    this.#put({ descriptions });
  }

  /** The server has nothing to tell. Not worth telling where values wait. */
  alive(): void {
    if (this.#queue.size < fullAt) this.#put({ alive: true });
  }

  /** Ends the queue: `next` still returns what waits, then rejects with `error`. */
  fail(error: unknown): void {
    this.#queue.fail(error);
  }

  /** Resolves with what waits, at least something and at most 10,000 readings. Rejects with `signal.reason` or as `fail` says. */
  async next(signal: AbortSignal): Promise<Delivery> {
    const batches = await this.#queue.takeAll(batchesPerDelivery, signal);
    this.#roomier.resolve();
    this.#roomier = Promise.withResolvers();
    const readings = batches.flatMap((batch) => (batch.readings?.values.length ? [batch.readings] : []));
    return batchDelivery(readings, {
      descriptions: batches.flatMap(({ descriptions }) => descriptions ?? []),
      gaps: batches.flatMap(({ gaps }) => gaps ?? []),
      ...(batches.some(({ alive }) => alive) && { alive: true }),
      awaited: false,
      ack: () => {
        for (const { stored } of batches) stored?.();
      },
    });
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
