// Reads the data of items from the service in pages, in the dialect of the current version.
//
// A page is limited by the service and by the size of its answer. The density of the data is unknown in advance. With a
// rollup, pages end at bucket boundaries, so that no bucket is split.
import { z } from "zod";
import { isAgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { maxSelected } from "../../wire/method.ts";
import { type DataFrame, dataFrame, rollupColumns, selectItemsResult } from "../../wire/results.ts";
import { parseRfcDuration, type RfcDuration } from "../../wire/rfc-duration.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import type { MethodCaller } from "../client/method-caller.ts";

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
