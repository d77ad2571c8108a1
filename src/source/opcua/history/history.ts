// Reads what a server has recorded of variables: HistoryRead of raw values, many nodes in one call, page by page (OPC
// 10000-11, 6.4.3). Continuation points are few on most servers: they are used up or given back.
import { AgentError } from "../../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import { statusOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import { type BatchSize, isTooMuch, type NodeId } from "../session/services.ts";
import type { DataValueLike } from "../types/reading.ts";

/** Values in one answer: small enough that live data does not wait behind it. */
const valuesPerAnswer = 5_000;
const mostPerNode = 1_000;
/** Nodes whose gaps begin and end within this time of each other are asked for together. */
const togetherUs = 60e6;
/** Between two calls the server rests as long as it took for the last, and at least this long. */
const restMs = 20;

export interface HistoryRange {
  readonly nodeId: NodeId;
  /** Both ends are there already: what lies between them is asked for. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
}

/** A page of one of the ranges. What lies around it may be among its values. */
export interface HistoryPage<Range> {
  readonly range: Range;
  readonly values: readonly DataValueLike[];
  /** Whether nothing more of this range comes. */
  readonly over: boolean;
  /** Why there is nothing, or no more. */
  readonly error?: Error;
}

interface Asked<Range> {
  readonly range: Range;
  readonly point?: Buffer | undefined;
}
interface Call<Range> {
  readonly from: number;
  readonly to: number;
  readonly nodes: Asked<Range>[];
}

export interface HistoryReading {
  readonly link: Link;
  readonly batch: BatchSize;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
}

/** Every range ends with a page that is `over`. Rejects only when the link is lost or `signal` aborts. */
export async function* readHistory<Range extends HistoryRange>(
  reading: HistoryReading,
  ranges: readonly Range[],
  signal: AbortSignal,
): AsyncGenerator<HistoryPage<Range>> {
  const { batch, link, clock } = reading;
  const calls = together(ranges, batch.size);
  let lastMs: number | undefined;
  let call: Call<Range> | undefined;
  try {
    while ((call = calls.shift())) {
      // The server has other things to do.
      if (lastMs !== undefined) await clock.sleep(Math.max(restMs, lastMs), signal);
      const startedMs = clock.monotonic();
      const answer = await ask(reading, call, false, signal).catch((error: unknown) => asError(error, link, signal));
      lastMs = clock.monotonic() - startedMs;
      const { from, to } = call;
      if (answer instanceof Error) {
        const halves = isTooMuch(answer) && call.nodes.length === batch.size ? batch.halve() : true;
        const half = Math.ceil(call.nodes.length / 2);
        const parts = [call.nodes.slice(0, half), call.nodes.slice(half)];
        if (call.nodes.length > 1 && halves) calls.unshift(...parts.map((nodes) => ({ from, to, nodes })));
        else for (const { range } of call.nodes) yield { range, values: [], over: true, error: answer };
        continue;
      }
      // Checks the whole answer before it yields a page, because the caller may stop after any page.
      const going: Asked<Range>[] = [];
      const pages: HistoryPage<Range>[] = [];
      for (const [i, { statusCode, values, point }] of answer.entries()) {
        const node = call.nodes[i];
        if (!node) continue;
        const { range } = node;
        const error = failureOf(statusCode);
        const next = error || point ? undefined : unreported(values, perNode(call), call);
        // Too many points at a time for this server: once more, alone.
        const again = statusCode.name === "BadNoContinuationPoints" && call.nodes.length > 1;
        if (again) calls.push({ from, to, nodes: [{ range }] });
        else if (point) going.push({ range, point });
        else if (next !== undefined) calls.push({ from: next, to, nodes: [{ range }] });
        const over = !point && next === undefined && !again;
        if (over || values.length > 0) pages.push({ range, values, over, ...(over && error && { error }) });
      }
      if (going.length > 0) calls.unshift({ from, to, nodes: going });
      call = undefined;
      yield* pages;
    }
  } finally {
    for (const { from, to, nodes: all } of [...(call ? [call] : []), ...calls]) {
      const nodes = all.filter(({ point }) => point);
      if (nodes.length > 0 && !link.lost.aborted)
        await ask(reading, { from, to, nodes }, true, new AbortController().signal).catch(() => {});
    }
  }
}

/** Calls for ranges that are alike, none for more nodes than `most`. */
function together<Range extends HistoryRange>(ranges: readonly Range[], most: number): Call<Range>[] {
  const calls: Call<Range>[] = [];
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = calls.at(-1);
    const fits =
      last !== undefined &&
      last.nodes.length < most &&
      range.from - last.from <= togetherUs &&
      Math.abs(range.to - (last.nodes[0]?.range.to ?? 0)) <= togetherUs;
    if (fits) {
      last.nodes.push({ range });
      calls[calls.length - 1] = { ...last, to: Math.max(last.to, range.to) };
    } else calls.push({ from: range.from, to: range.to, nodes: [{ range }] });
  }
  return calls;
}

function perNode({ nodes }: Call<unknown>): number {
  return Math.min(mostPerNode, Math.max(10, Math.floor(valuesPerAnswer / nodes.length)));
}

/** Some servers stop at the number they were asked for without saying that there is more: from where to go on. */
function unreported(values: readonly DataValueLike[], most: number, { from }: Call<unknown>): EpochMicros | undefined {
  const last = (values.at(-1)?.sourceTimestamp?.getTime() ?? 0) * 1_000;
  return values.length >= most && last > from ? epochMicros(last) : undefined;
}

async function ask<Range extends HistoryRange>(
  { link }: HistoryReading,
  call: Call<Range>,
  releaseContinuationPoints: boolean,
  signal: AbortSignal,
) {
  const { ua } = link;
  const request = {
    historyReadDetails: new ua.ReadRawModifiedDetails({
      isReadModified: false,
      // Whole milliseconds around the gap, with the value at its end, where the time may or may not be taken as included:
      // what lies at its edges is cut off afterwards, to the microsecond.
      startTime: new Date(Math.floor(call.from / 1_000)),
      endTime: new Date(Math.floor(call.to / 1_000) + 1),
      numValuesPerNode: perNode(call),
      // The stack would ask for bounds: values that were never measured.
      returnBounds: false,
    }),
    timestampsToReturn: ua.TimestampsToReturn.Both,
    releaseContinuationPoints,
    nodesToRead: call.nodes.map(({ range: { nodeId }, point }) => ({
      nodeId,
      ...(point && { continuationPoint: point }),
    })),
  };
  const { results } = await link.call("HistoryRead", request, signal, releaseContinuationPoints ? 2_000 : undefined);
  if (results?.length !== call.nodes.length)
    throw new AgentError(
      "SOURCE_PROTOCOL",
      `HistoryRead: ${results?.length ?? 0} results for ${call.nodes.length} nodes`,
    );
  return results.map(({ statusCode, historyData, continuationPoint }) => ({
    statusCode,
    values: historyData instanceof ua.HistoryData ? (historyData.dataValues ?? []) : [],
    point: continuationPoint?.length ? continuationPoint : undefined,
  }));
}

function failureOf(statusCode: { readonly name: string; isGoodish(): boolean }): Error | undefined {
  // `GoodNoData` and `BadNoData` are said where nothing was recorded in this time.
  if (statusCode.isGoodish() || statusCode.name === "BadNoData") return undefined;
  return new AgentError("SOURCE_PROTOCOL", `HistoryRead: ${statusCode.name}`);
}

/** What a call failed with; throws where nothing more can be asked. */
function asError(error: unknown, link: Link, signal: AbortSignal): Error {
  signal.throwIfAborted();
  if (link.lost.aborted || statusOf(error) === "BadSessionIdInvalid") throw error;
  return error instanceof Error ? error : new Error(String(error));
}
