// HistoryRead of raw values: many nodes per call, page by page (OPC 10000-11, 6.4.3). Continuation points are scarce on
// most servers, so each is used up or released.
import { AgentError } from "../../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import type { Link } from "../session/link.ts";
import { type BatchSize, isTooMuch, type NodeId } from "../session/services.ts";
import { statusOf } from "../stack/failure.ts";
import type { DataValueLike } from "../types/reading.ts";

/** Values per answer, few enough not to delay live data. */
const valuesPerAnswer = 5_000;
const mostPerNode = 1_000;
/** Ranges whose ends differ by at most this are read together. */
const togetherUs = 60e6;
/** Pages in a row without a newer value at which a range ends: some continuation points lead back to the start. */
const mostIdlePages = 20;
/** Minimum pause between calls. The pause also lasts as long as the previous call. */
const restMs = 20;

export interface HistoryRange {
  readonly nodeId: NodeId;
  /** Exclusive bounds. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
}

/** A page of one range. Its values may include some outside the range. */
export interface HistoryPage<Range> {
  readonly range: Range;
  readonly values: readonly DataValueLike[];
  /** Whether this is the last page of the range. */
  readonly over: boolean;
  /** Why the range is incomplete. */
  readonly error?: Error;
}

interface Asked<Range> {
  readonly range: Range;
  readonly point?: Buffer | undefined;
  /** Time of the newest value so far, and pages since then. */
  readonly newest?: number;
  readonly since?: number;
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

/** Every range ends with a page that is `over`. Rejects only if the link is lost or `signal` aborts. */
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
      // Leave the server time for other work.
      if (lastMs !== undefined) await clock.sleep(Math.max(restMs, lastMs), signal);
      const startedMs = clock.monotonic();
      const answer = await ask(reading, call, false, signal).catch((error: unknown) => asError(error, link, signal));
      lastMs = clock.monotonic() - startedMs;
      const { from, to } = call;
      if (answer instanceof Error) {
        const halves = isTooMuch(answer, true) && call.nodes.length === batch.size ? batch.halve() : true;
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
        const { range, newest = 0, since = 0 } = node;
        const last = values.reduce((most, value) => Math.max(most, timeOf(value)), newest);
        const idle = last > newest ? 0 : since + 1;
        const endless = point && idle >= mostIdlePages ? endlessError : undefined;
        if (endless) await release(reading, { from, to, nodes: [{ range, point }] });
        const error = failureOf(statusCode) ?? endless;
        const next = error || point ? undefined : unreported(values, perNode(call), call);
        // Too many continuation points for this server: read this range again, alone.
        const again = statusCode.name === "BadNoContinuationPoints" && call.nodes.length > 1;
        if (again) calls.push({ from, to, nodes: [{ range }] });
        else if (point && !endless) going.push({ range, point, newest: last, since: idle });
        else if (next !== undefined) calls.push({ from: next, to, nodes: [{ range }] });
        const over = (!point || endless !== undefined) && next === undefined && !again;
        if (over || values.length > 0) pages.push({ range, values, over, ...(over && error && { error }) });
      }
      if (going.length > 0) calls.unshift({ from, to, nodes: going });
      call = undefined;
      yield* pages;
    }
  } finally {
    for (const left of [...(call ? [call] : []), ...calls]) await release(reading, left);
  }
}

const endlessError = new AgentError("SOURCE_PROTOCOL", "HistoryRead: the server's continuation points lead nowhere");

/** Releases the continuation points of a call. Never rejects. */
async function release<Range extends HistoryRange>(reading: HistoryReading, { from, to, nodes }: Call<Range>) {
  const held = nodes.filter(({ point }) => point);
  if (held.length > 0 && !reading.link.lost.aborted)
    await ask(reading, { from, to, nodes: held }, true, new AbortController().signal).catch(() => {});
}

/** Milliseconds since 1970. Servers that give no source times still give those of the server. */
function timeOf({ sourceTimestamp, serverTimestamp }: DataValueLike): number {
  return (sourceTimestamp ?? serverTimestamp)?.getTime() ?? 0;
}

/** Combines similar ranges into calls of at most `most` nodes. */
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

/** Some servers stop at the requested count without a continuation point. Returns the time to continue from. */
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
      // Read whole milliseconds around the gap, since servers differ on whether the end is included. The caller cuts
      // the values to the microsecond.
      startTime: new Date(Math.floor(call.from / 1_000)),
      endTime: new Date(Math.floor(call.to / 1_000) + 1),
      numValuesPerNode: perNode(call),
      // The stack's default would request bounds, which are not measured values.
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
  // Both `GoodNoData` and `BadNoData` mean that nothing was recorded in this time.
  if (statusCode.isGoodish() || statusCode.name === "BadNoData") return undefined;
  return new AgentError("SOURCE_PROTOCOL", `HistoryRead: ${statusCode.name}`);
}

/** The error of a call. Throws if the connection or session is lost. */
function asError(error: unknown, link: Link, signal: AbortSignal): Error {
  signal.throwIfAborted();
  if (link.lost.aborted || statusOf(error) === "BadSessionIdInvalid") throw error;
  return error instanceof Error ? error : new Error(String(error));
}
