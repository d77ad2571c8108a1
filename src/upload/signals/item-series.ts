// The stored values of one input, for a plot: raw over a short time, otherwise in buckets with their range.
import { AgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros, type InputId, type SignalId } from "../../core/point.ts";
import { formatRfcDuration, parseRfcDuration } from "../../wire/rfc-duration.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { itemData } from "./item-data.ts";
import { type StoredSignal, storedSignals } from "./stored-signals.ts";

export interface ItemSeries {
  /** Milliseconds since 1970, ascending. */
  readonly times: readonly number[];
  /** The values, or the mean of each bucket. */
  readonly values: readonly (number | null)[];
  /** Range of each bucket. Left out for raw values. */
  readonly min?: readonly (number | null)[];
  readonly max?: readonly (number | null)[];
  /** Length of a bucket in milliseconds. Left out for raw values. */
  readonly bucketMs?: number;
  /** `gapDetection` of the item in milliseconds: points further apart are not connected. Left out if it has none. */
  readonly gapMs?: number;
  /** Whether a value holds until the next one, as a setpoint does: the item has neither interval nor gap detection. */
  readonly holds: boolean;
}

/** A longer span is read in buckets, about this many. */
const rawUpToUs = 3_600e6;
const buckets = 720;
const minute = 60e6;

/**
 * Rejects as `MethodCaller.call` does, or with `SERVICE_PROTOCOL` if the service has no item for the signal. Takes one
 * or two requests of other methods than those that deliver.
 */
export async function itemSeries(
  caller: MethodCaller,
  { input, id }: { readonly input: InputId; readonly id: SignalId },
  { from, before }: { readonly from: EpochMicros; readonly before: EpochMicros },
  signal: AbortSignal,
): Promise<ItemSeries> {
  let stored: StoredSignal | undefined;
  for await (const page of storedSignals(caller, { items: true, ids: [id] }, signal)) stored = page[0] ?? stored;
  const item = stored?.itemId;
  if (stored === undefined || item === undefined)
    throw new AgentError("SERVICE_PROTOCOL", `${input} is not published, and only items can be read`, {
      hint: "tagferry signals publish makes items of signals",
    });
  const isRaw = before - from <= rawUpToUs;
  const bucketUs = Math.ceil((before - from) / buckets / minute) * minute;
  const rollup = isRaw ? undefined : formatRfcDuration(bucketUs);
  const read = { times: [] as number[], values: [] as Cell[], min: [] as Cell[], max: [] as Cell[] };
  for await (const { times, series } of itemData(caller, { items: [item], from, before, rollup }, signal)) {
    const column = (name: string) => series[isRaw ? item : `${item}_${name}`] ?? [];
    const [avg, min, max] = [column("avg"), column("min"), column("max")];
    for (const [i, text] of times.entries()) {
      const time = parseTimestamp(text);
      if (time === undefined) continue;
      read.times.push(time / 1_000);
      read.values.push(avg[i] ?? null);
      read.min.push(min[i] ?? null);
      read.max.push(max[i] ?? null);
    }
  }
  const { times, values, min, max } = read;
  const { gapDetection, sampleInterval } = (stored.item ?? stored).attributes;
  const gapUs = parseRfcDuration(gapDetection ?? "")?.micros;
  return {
    times,
    values,
    ...(!isRaw && { min, max, bucketMs: bucketUs / 1_000 }),
    ...(gapUs !== undefined && { gapMs: gapUs / 1_000 }),
    holds: (gapDetection ?? sampleInterval ?? null) === null,
  };
}

type Cell = number | null;

export function spanBefore(
  now: EpochMicros,
  spanMs: number,
): { readonly from: EpochMicros; readonly before: EpochMicros } {
  return { from: epochMicros(now - spanMs * 1_000), before: now };
}
