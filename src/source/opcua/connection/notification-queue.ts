// Converts values to readings and queues them for the pipeline: bounded, in batches that are acknowledged in order.
import { AgentError } from "../../../core/errors.ts";
import { epochMicros } from "../../../core/point.ts";
import type { ReadingBatch, ReadPlace } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Description, Reading, TagGap, TagId } from "../../../core/source.ts";
import { BoundedQueue, orAbort } from "../../../lib/flow/abort.ts";
import { batchDelivery, batchOf } from "../../../lib/readings/reading-batch.ts";
import type { Arrival, Backfill } from "../history/backfill.ts";
import type { Item } from "../nodes/items.ts";
import { PlainNumber } from "../types/plain-value.ts";
import { type NotifiedValue, numberReading, overflowed, type TimeOptions, toReading } from "../types/reading.ts";

interface Batch {
  readonly readings?: ReadingBatch;
  readonly descriptions?: readonly Description[];
  /** Gaps to record after these readings. */
  readonly gaps?: readonly TagGap[] | undefined;
  /** Called once the readings are on disk. */
  readonly stored?: (() => void) | undefined;
  /** Tags for which the server has nothing more to send. */
  readonly alive?: ReadonlySet<TagId>;
}

interface ItemValues {
  readonly items: readonly Item[];
  /** `values[i]` belongs to `items[i]`. */
  readonly values: readonly NotifiedValue[];
  readonly unreported?: ReadonlySet<NotifiedValue>;
}

const batchReadings = 1_000;
const batchesPerDelivery = 10;
/** Number of waiting batches at which the agent stops requesting notifications. */
const fullAt = 20;
const mostBatches = 1_000;
/** Each confirmation looks at all tags. Heartbeats may be this late, in milliseconds. */
const confirmEveryMs = 500;
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

export function notificationQueue(runtime: Runtime, options: { readonly source: string; readonly time: TimeOptions }) {
  const queue = new BoundedQueue<Batch>(mostBatches);
  /** Items in the order of their first values. */
  let places: Item[] = [];
  let rows = new Map<Item, number>();
  let roomier = Promise.withResolvers<void>();
  let overflowCount = 0;
  /** Tags and monotonic time of the last confirmation, by what was confirmed. */
  const confirmed = new Map<string | number, { readonly tags: ReadonlySet<TagId>; readonly ms: number }>();
  const source = options.source;
  const timeOptions = options.time;

  function rowOf(item: Item): number {
    let row = rows.get(item);
    if (row === undefined) rows.set(item, (row = places.push(item) - 1));
    return row;
  }

  /** Resolves with 1 to 10 batches (10,000 readings). Rejects with `signal.reason` or the error of `fail`. */
  async function next(signal: AbortSignal): Promise<Delivery> {
    const batches = await queue.takeAll(batchesPerDelivery, signal);
    roomier.resolve();
    roomier = Promise.withResolvers();
    const confirmedTags = batches.flatMap(({ alive }) => alive ?? []);
    const readings = batches.flatMap((batch) => (batch.readings?.values.length ? [batch.readings] : []));
    return batchDelivery(readings, {
      descriptions: batches.flatMap(({ descriptions }) => descriptions ?? []),
      gaps: batches.flatMap(({ gaps }) => gaps ?? []),
      ...(confirmedTags.length > 0 && { alive: confirmedTags }),
      awaited: false,
      ack: () => {
        for (const { stored } of batches) stored?.();
      },
    });
  }

  function put(batch: Batch): void {
    if (!queue.offer(batch) && queue.size >= mostBatches)
      throw new AgentError("SOURCE_PROTOCOL", "the server sends more in one message than it was asked to");
  }

  return {
    get overflows(): number {
      return overflowCount;
    },
    /**
     * Queues `values[i]` as readings of `items[i]`. Each value in `unreported` may follow discarded values. Calls
     * `stored` once all are on disk. Throws `SOURCE_PROTOCOL` if the queue is full.
     */
    values(
      { items, values, unreported }: ItemValues,
      stream: Arrival["stream"],
      backfill: Pick<Backfill, "arrived" | "untimed" | "stored">,
      stored: () => void,
    ): void {
      const arrival = runtime.clock.now();
      const newColumns = () => new ReadingColumns(places, Math.min(batchReadings, values.length));
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
          ? numberReading(value, item, arrival, timeOptions)
          : toReading(value, item, arrival, timeOptions);
        if (reading === "untimed") untimedValues++;
        if (!reading || reading === "untimed") continue;
        // Values from a former subscription may be older than those from the current one.
        if (columns.isFull) {
          put({ readings: columns.batch() });
          columns = newColumns();
        }
        const row = rowOf(item);
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
        overflowCount += overflowing;
        runtime.metrics.counter(overflows).add(overflowing, { source });
      }
      if (untimedValues > 0) runtime.metrics.counter(untimed).add(untimedValues, { source });
      const allStored = () => {
        let i = 0;
        for (const item of stamped) backfill.stored(item, epochMicros(times[i++] ?? arrival));
        stored();
      };
      put({ readings: columns.batch(), stored: allStored, gaps });
    },
    /** Releases the items; call it when items are added, since others may have been removed. */
    forgetItems(): void {
      places = [];
      rows = new Map();
      confirmed.clear();
    },
    /** Queues readings; `stored` and `gaps` go with the last batch. Throws like `values`. */
    readings(readings: readonly Reading[], stored?: () => void, gaps?: readonly TagGap[]): void {
      let from = 0;
      for (; readings.length - from > batchReadings; from += batchReadings)
        put({ readings: batchOf(readings.slice(from, from + batchReadings)) });
      put({ readings: batchOf(from > 0 ? readings.slice(from) : readings), stored, gaps });
    },
    descriptions(descriptions: readonly Description[]): void {
      put({ descriptions });
    },
    /**
     * Queues that the server has nothing more to send for a subscription, or for polls of one interval: once in
     * `confirmEveryMs`, unless many values wait already. `items` is called after `forgetItems`.
     */
    alive(what: string | number, items: () => readonly Item[]): void {
      const ms = runtime.clock.monotonic();
      const before = confirmed.get(what);
      if (queue.size >= fullAt || (before && ms - before.ms < confirmEveryMs)) return;
      const tags = before?.tags ?? new Set(items().map(({ tag }) => tag));
      confirmed.set(what, { tags, ms });
      put({ alive: tags });
    },
    /** Ends the queue: `next` returns the remaining batches, then rejects with `error`. */
    fail(error: unknown): void {
      queue.fail(error);
    },
    next,
    async *rest(): AsyncGenerator<Delivery> {
      while (queue.size > 0) yield await next(new AbortController().signal);
    },
    async room(signal: AbortSignal): Promise<void> {
      while (queue.size >= fullAt) await orAbort(roomier.promise, signal);
    },
  };
}

// Collects readings in columns: good finite numbers with the device's time compactly, all others separately.

export class ReadingColumns {
  readonly #places: readonly ReadPlace[];
  readonly #rows: Uint32Array<ArrayBuffer>;
  /** First half: values. Second half: their times. */
  readonly #values: Float64Array<ArrayBuffer>;
  readonly #apart = new Map<number, Reading>();
  #length = 0;

  /** `places`: as in `ReadingBatch`; may grow. */
  constructor(places: readonly ReadPlace[], capacity: number) {
    this.#places = places;
    this.#rows = new Uint32Array(capacity);
    this.#values = new Float64Array(2 * capacity);
  }

  get isFull(): boolean {
    return this.#length === this.#rows.length;
  }

  /** `row`: index of the reading's place. Requires that `isFull` is false. */
  add(row: number, reading: Reading): void {
    const { value, time, clock, quality, historical } = reading;
    const isNumber = typeof value === "number" && Number.isFinite(value);
    if (!isNumber || clock !== "device" || quality !== "good" || historical) this.#apart.set(this.#length, reading);
    this.addNumber(row, isNumber ? value : Number.NaN, time);
  }

  /** Like `add`, for a good finite number with the device's time that is not historical. */
  addNumber(row: number, value: number, time: number): void {
    const at = this.#length++;
    this.#rows[at] = row;
    this.#values[at] = value;
    this.#values[this.#rows.length + at] = time;
  }

  batch(): ReadingBatch {
    const [places, apart, length, capacity] = [this.#places, this.#apart, this.#length, this.#rows.length];
    const rows = this.#rows.subarray(0, length);
    const times = this.#values.subarray(capacity, capacity + length);
    return { places, rows, values: this.#values.subarray(0, length), times, clock: "device", apart };
  }
}
