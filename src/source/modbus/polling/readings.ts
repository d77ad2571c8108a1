// Converts replies and failures to readings. Pure.

import type { EpochMicros } from "../../../core/point.ts";
import type { ReadingBatch } from "../../../core/reading.ts";
import type { Reading, TagId } from "../../../core/source.ts";
import { HandOver } from "../../../lib/flow/abort.ts";
import { badReading, batchOf, readingsOf } from "../../../lib/readings/reading-batch.ts";
import { scaled } from "../../../lib/values/decimal-text.ts";
import type { ReadBlock } from "../config/plan.ts";
import { type Decoded, decodeBit, decodeRegisters, isRegisterTable } from "../config/registers.ts";
import type { TagRead, TagSpan } from "../config/tag-reads.ts";

/** The SunSpec limit of a scale factor, as a power of ten. */
const largestExponent = 10;

/** The values of a block: one list for all its replies, since the mapping caches by identity. */
const placesByBlock = new WeakMap<ReadBlock<TagSpan>, readonly TagRead[]>();

/** One reading per value in `block`, from the data of its reply. */
export function decodeBlock(block: ReadBlock<TagSpan>, bytes: Uint8Array, time: EpochMicros): ReadingBatch {
  const places = placesOf(block);
  const booleans = !isRegisterTable(block.table);
  const values = new Float64Array(places.length);
  let apart: Map<number, Reading> | undefined;
  for (let i = 0; i < values.length; i++) {
    const place = places[i]!;
    const value = booleans
      ? Number(decodeBit(bytes, place.start - block.start))
      : place.read?.(bytes, (place.start - block.start) * 2);
    if (typeof value === "number" && Number.isFinite(value)) {
      // Adding 0 turns −0 into 0.
      values[i] = value + 0;
      continue;
    }
    values[i] = Number.NaN;
    const decoded = decode(place, bytes, block.start);
    if (decoded.ok && typeof decoded.value === "number") values[i] = decoded.value;
    else
      (apart ??= new Map()).set(
        i,
        decoded.ok ? readingOf(place, decoded.value, time) : failedReading(place, decoded.reason, time),
      );
  }
  return { places, values, booleans, times: time, clock: "agent", apart };
}

function placesOf(block: ReadBlock<TagSpan>): readonly TagRead[] {
  const known = placesByBlock.get(block);
  if (known) return known;
  const places = block.items.flatMap((item) => item.values);
  placesByBlock.set(block, places);
  return places;
}

export function failedReadings(block: ReadBlock<TagSpan>, reason: string, time: EpochMicros): ReadingBatch {
  return batchOf(block.items.flatMap((item) => item.values.map((value) => failedReading(value, reason, time))));
}

function decode({ start, format, scale }: TagRead, bytes: Uint8Array, from: number): Decoded {
  if (!format) return { ok: true, value: decodeBit(bytes, start - from) };
  const decoded = decodeRegisters(bytes, start - from, format);
  if (!decoded.ok || !scale || typeof decoded.value === "boolean") return decoded;
  const factor = decodeRegisters(bytes, scale.start - from, scale.format);
  if (!factor.ok) return { ok: false, reason: `its scale factor: ${factor.reason}` };
  const exponent = Number(factor.value);
  if (!Number.isInteger(exponent) || Math.abs(exponent) > largestExponent)
    return { ok: false, reason: `its scale factor is ${exponent}, beyond ±${largestExponent}` };
  return { ok: true, value: scaled(decoded.value, exponent) };
}

function failedReading({ tag, captures, address }: TagRead, reason: string, time: EpochMicros): Reading {
  return badReading({ tag, captures, address, time }, reason);
}

function readingOf({ tag, captures, address }: TagRead, value: Reading["value"], time: EpochMicros): Reading {
  return { tag, captures, address, value, time, clock: "agent", quality: "good", historical: false };
}

// Queues polled readings for the buffer. Polling never waits: if the queue is full, the oldest readings are dropped,
// counted, and reported to each tag.

export type ReadingsQueue = ReturnType<typeof readingsQueue>;

/** `capacity` in readings. A single cycle may exceed it. */
export function readingsQueue(capacity: number) {
  const handOver = new HandOver();
  const cycles: (readonly ReadingBatch[])[] = [];
  let queued = 0;
  /** Tag → last dropped reading and number of dropped ones. Bounded by the number of tags. */
  let droppedByTag = new Map<TagId, { readonly last: Reading; readonly count: number }>();

  function takeNow(max: number): readonly ReadingBatch[] | undefined {
    if (cycles.length === 0) return undefined;
    const dropped: Reading[] = [...droppedByTag.values()].map(({ last, count }) => ({
      ...last,
      value: undefined,
      quality: "bad",
      reason: `${count} readings were dropped: the buffer did not take them in time`,
    }));
    droppedByTag = new Map();
    const batches = dropped.length > 0 ? [batchOf(dropped)] : [];
    let readings = dropped.length;
    do {
      const cycle = cycles.shift() ?? [];
      batches.push(...cycle);
      readings += sizeOf(cycle);
    } while (cycles.length > 0 && readings + sizeOf(cycles[0]) <= max);
    queued -= readings - dropped.length;
    return batches;
  }

  return {
    get size(): number {
      return queued;
    },
    /** Queues a cycle. Returns the number of older readings that were dropped. */
    offer(cycle: readonly ReadingBatch[]): number {
      const size = sizeOf(cycle);
      if (handOver.failed || size === 0) return 0;
      let dropped = 0;
      while (cycles.length > 0 && queued + size > capacity) {
        const oldest = readingsOf(cycles.shift() ?? []);
        queued -= oldest.length;
        dropped += oldest.length;
        for (const last of oldest)
          droppedByTag.set(last.tag, { last, count: (droppedByTag.get(last.tag)?.count ?? 0) + 1 });
      }
      cycles.push(cycle);
      queued += size;
      handOver.notify();
      return dropped;
    },
    /** See `HandOver.fail`. */
    fail(error: unknown): void {
      handOver.fail(error);
    },
    /**
     * Resolves with whole cycles of about `max` readings, after one bad reading per tag with dropped ones. Rejects like
     * `HandOver.take`.
     */
    take(max: number, signal: AbortSignal): Promise<readonly ReadingBatch[]> {
      return handOver.take(() => takeNow(max), signal);
    },
  };
}

function sizeOf(cycle: readonly ReadingBatch[] = []): number {
  return cycle.reduce((sum, { values }) => sum + values.length, 0);
}
