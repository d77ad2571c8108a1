// Reads the data of items from the service in pages, in the dialect of the current version.
//
// A page is limited by the service and by the size of its answer. The density of the data is unknown in advance. With a
// rollup, pages end at bucket boundaries, so that no bucket is split.
import { z } from "zod";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros, type InputId, type SignalId } from "../../core/point.ts";
import { maxSelected } from "../../wire/method.ts";
import { type DataFrame, dataFrame, rollupColumns, selectItemsResult } from "../../wire/results.ts";
import { formatRfcDuration, parseRfcDuration, type RfcDuration } from "../../wire/rfc-duration.ts";
import { formatTimestamp, parseTimestamp } from "../../wire/timestamp.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { type StoredSignal, storedSignals } from "./stored-signals.ts";

/** Undefined: raw points. `window`: a single bucket. */
export type ReadRollup = undefined | "window" | RfcDuration;

export interface ItemDataQuery {
  /** At most 50. */
  readonly items: readonly string[];
  /** Inclusive. */
  readonly from: EpochMicros;
  /** Exclusive. */
  readonly before: EpochMicros;
  /** In the notation of the service. */
  readonly rollup: string | undefined;
}

const second = 1e6;
const day = 86_400e6;
/** First page in microseconds. Later pages are longer if the data is sparse. */
const firstPage = 3_600e6;
/** Target range for the number of values in an answer. */
const fewCells = 50_000;
const manyCells = 400_000;

/** The parsed rollup, or why `version` does not support it. */
export function readRollup(text: string, version: "1.1beta1" | "1.1"): ReadRollup | { readonly wrong: string } {
  if (text === "window") return "window";
  const parsed = parseRfcDuration(text);
  if (!parsed || parsed.months > 0 === parsed.micros > 0 || parsed.months < 0 || parsed.micros < 0)
    return { wrong: "must be a duration such as PT1M, PT1H or P1D, or window" };
  if (parsed.months > 0 && version !== "1.1")
    return { wrong: `can be months or years from version 1.1 on, not ${version}` };
  return parsed;
}

/** Longest permitted span of a request, in microseconds. */
export function longestSpan(rollup: ReadRollup, version: "1.1beta1" | "1.1"): number {
  if (rollup === undefined) return 40 * day;
  if (rollup === "window") return version === "1.1" ? Number.POSITIVE_INFINITY : 400 * day;
  const width = rollup.micros + rollup.months * 30 * day;
  if (width < 60 * second) return 40 * day;
  if (version === "1.1" && width >= 30 * day) return 3_660 * day;
  return version === "1.1" && width >= day ? 1_900 * day : 400 * day;
}

/** Yields frames in ascending time; `window` may need several. Rejects as `MethodCaller.call` does. */
export async function* itemData(
  caller: MethodCaller,
  query: ItemDataQuery,
  signal: AbortSignal,
): AsyncGenerator<DataFrame> {
  const { from, before, rollup } = query;
  const parsed = rollup === undefined ? undefined : readRollup(rollup, caller.version);
  if (typeof parsed === "object" && "wrong" in parsed) return;
  const longest = longestSpan(parsed, caller.version);
  let span = Math.min(longest, firstSpan(parsed, query.items.length));
  for (let at: number = from; at < before; ) {
    const end = Math.min(before, pageEnd(at, span, parsed));
    let frame: DataFrame;
    try {
      frame = await readFrame(caller, query, epochMicros(at), epochMicros(end), signal);
    } catch (error) {
      // The answer exceeds the limit of the service or of the reader.
      const shorter = (end - at) / 4;
      if (!isAgentError(error, "SERVICE_PROTOCOL") || parsed === "window" || shorter < leastSpan(parsed)) throw error;
      span = shorter;
      continue;
    }
    yield frame;
    const cells = frame.times.length * (1 + Object.keys(frame.series).length);
    if (cells < fewCells) span = Math.min(longest, span * (cells < fewCells / 16 ? 16 : 4));
    else if (cells > manyCells) span = Math.max(leastSpan(parsed), span / 2);
    at = end;
  }
}

/** A rollup has a known number of values, raw data does not. */
function firstSpan(rollup: ReadRollup, items: number): number {
  if (rollup === undefined) return firstPage;
  if (rollup === "window") return Number.POSITIVE_INFINITY;
  const perBucket = 1 + rollupColumns.length * items;
  return Math.max(leastSpan(rollup), ((rollup.micros + rollup.months * 30 * day) * manyCells) / perBucket / 2);
}

/** At least one bucket, in microseconds. */
function leastSpan(rollup: ReadRollup): number {
  if (rollup === undefined || rollup === "window") return second;
  return rollup.micros + rollup.months * 31 * day;
}

/** End of a page that starts at `at`, on a bucket boundary. */
export function pageEnd(at: number, span: number, rollup: ReadRollup): number {
  if (rollup === undefined || rollup === "window") return at + span;
  const end = bucketStart(at + span, rollup);
  return end > at ? end : bucketStart(at + 2 * leastSpan(rollup), rollup);
}

/** Origins of the service's buckets: Monday 2000-01-03, and 2000-01-01 for months. */
const monday = Date.UTC(2000, 0, 3) * 1_000;
const millennium = 24_000;

function bucketStart(time: number, { months, micros }: RfcDuration): number {
  if (months === 0) return monday + Math.floor((time - monday) / micros) * micros;
  const date = new Date(time / 1_000);
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth() - millennium;
  return Date.UTC(2000, Math.floor(month / months) * months, 1) * 1_000;
}

const currentFrame = z.object({ data: dataFrame });

async function readFrame(
  caller: MethodCaller,
  { items, rollup = null }: { readonly items: readonly string[]; readonly rollup?: string | null | undefined },
  from: EpochMicros,
  before: EpochMicros,
  signal: AbortSignal,
): Promise<DataFrame> {
  const [notBefore, until] = [formatTimestamp(from), formatTimestamp(before)];
  const filter = { id: { $in: items } };
  const limit = Math.min(items.length, maxSelected.itemsWithData);
  if (caller.version === "1.1") {
    const { data } = await caller.call(
      "platform.dataFrame",
      {
        query: { filter, limit },
        data: { filter: { times: { $gte: notBefore, $lt: until } }, rollup },
        include: [],
        format: { dataAsArray: false, groupIncludedByType: true },
      },
      currentFrame,
      signal,
    );
    return data;
  }
  const { data } = await caller.call(
    "platform.selectItems",
    { items: { include: false, filter, limit }, data: { include: true, notBefore, before: until, rollup } },
    selectItemsResult,
    signal,
  );
  return data ?? { times: [], series: {} };
}

/** The stored values of one input, for a plot: raw over a short time, otherwise in buckets with their range. */
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
