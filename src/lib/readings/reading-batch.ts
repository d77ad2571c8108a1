// Conversion between plain readings and batches: see `core/reading.ts`.

import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { ReadingBatch } from "../../core/reading.ts";
import type { Delivery, Reading } from "../../core/source.ts";

export function batchOf(readings: readonly Reading[]): ReadingBatch {
  return {
    places: readings,
    values: new Float64Array(readings.length).fill(Number.NaN),
    times: epochMicros(0),
    clock: "agent",
    apart: new Map(readings.entries()),
  };
}

/** Time of the value at `i`, unless the reading is in `apart`. */
export function timeAt({ times }: ReadingBatch, i: number): EpochMicros {
  return typeof times === "number" ? times : epochMicros(times[i] ?? Number.NaN);
}

export function readingAt(batch: ReadingBatch, i: number): Reading {
  const { places, rows, values, booleans, clock, device, apart } = batch;
  const reading = apart?.get(i);
  if (reading) return reading;
  const { tag, captures, address } = places[rows?.[i] ?? i]!;
  const value = booleans ? values[i] === 1 : values[i];
  return { tag, captures, address, value, time: timeAt(batch, i), clock, device, quality: "good", historical: false };
}

export function readingsOf(batches: readonly ReadingBatch[]): Reading[] {
  return batches.flatMap((batch) => Array.from(batch.values, (_, i) => readingAt(batch, i)));
}

/** A delivery of batches. Its `readings` are created on first access. */
export function batchDelivery(
  batches: readonly ReadingBatch[],
  rest: Omit<Delivery, "readings" | "batches">,
): Delivery {
  let readings: readonly Reading[] | undefined;
  return {
    ...rest,
    batches,
    get readings() {
      return (readings ??= readingsOf(batches));
    },
  };
}

export function readingCount(delivery: Pick<Delivery, "readings" | "batches">): number {
  return delivery.batches?.reduce((sum, { values }) => sum + values.length, 0) ?? delivery.readings.length;
}

/** Readings that show the device times: all in `apart`, and the latest from the columns of each batch. */
export function latestReadings(delivery: Pick<Delivery, "readings" | "batches">): readonly Reading[] {
  return (
    delivery.batches?.flatMap((batch) => [...(batch.apart?.values() ?? []), ...latestOf(batch)]) ?? delivery.readings
  );
}

function latestOf(batch: ReadingBatch): Reading[] {
  const { times, values, apart } = batch;
  let latest = -1;
  for (let i = 0; i < values.length; i++) {
    if (apart?.has(i)) continue;
    if (latest < 0 || timeAt(batch, i) > timeAt(batch, latest)) latest = i;
    if (typeof times === "number") break;
  }
  return latest < 0 ? [] : [readingAt(batch, latest)];
}

/** A reading without a value, because of `reason`. */
export function badReading(place: Pick<Reading, "tag" | "captures" | "address" | "time">, reason: string): Reading {
  return { ...place, value: undefined, clock: "agent", quality: "bad", reason, historical: false };
}
