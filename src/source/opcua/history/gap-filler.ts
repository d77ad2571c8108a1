// Fills gaps from the server's history and reports the result of each.

import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Reading, TagGap } from "../../../core/source.ts";
import type { Item } from "../nodes/items.ts";
import type { StructureTypes } from "../nodes/structure-types.ts";
import type { Link } from "../session/link.ts";
import { attributes, BatchSize, readValues, type Services } from "../session/services.ts";
import { statusOf } from "../stack/failure.ts";
import { ClockCheck, type DataValueLike, type TimeOptions, toReading } from "../types/reading.ts";
import { type HistoryGap, tagGaps } from "./gaps.ts";
import { type HistoryRange, readHistory } from "./history.ts";

export interface GapFillerOptions {
  readonly link: Link;
  readonly services: Services;
  readonly structures: Pick<StructureTypes, "learn">;
  readonly runtime: Runtime;
  readonly source: string;
  /** Undefined: gaps are only reported, not filled. */
  readonly maxGapMs: number | undefined;
  readonly time: TimeOptions;
  /** Server start by its own clock. Undefined if unknown. */
  readonly serverStarted: EpochMicros | undefined;
  /** Nodes per call; 0 if the server declares no limit. */
  readonly limit: number;
  /** Receives readings when there is room, then the gaps behind them. Calls `stored` once they are on disk. */
  readonly deliver: (
    readings: readonly Reading[],
    gaps: readonly TagGap[],
    stored: () => void,
    signal: AbortSignal,
  ) => Promise<void>;
}

/** Reads of a history that still lacks the last values; some are written late. */
const mostAttempts = 3;
/** AccessLevelType (OPC 10000-3, 8.57). */
const historyReadBit = 4;
/** Attempts for a gap with transient errors, one per minute; then it is lost. */
const mostFailures = 10;
/** Statuses of an unreachable device behind the server. Its history is retried without limit. */
const away = [
  "BadNotConnected",
  "BadServerNotConnected",
  "BadNoCommunication",
  "BadCommunicationError",
  "BadDeviceFailure",
  "BadOutOfService",
  "BadWaitingForInitialData",
];
const hopeless = [
  "BadHistoryOperationUnsupported",
  "BadHistoryOperationInvalid",
  "BadServiceUnsupported",
  "BadNotReadable",
  "BadUserAccessDenied",
  "BadNodeIdUnknown",
  "BadAttributeIdInvalid",
  "BadNotSupported",
  "BadNotImplemented",
];

const filled = {
  name: "source_opcua_backfilled_readings_total",
  help: "Readings that were missing and came from the server's history.",
  labels: ["source"],
} as const;
const unfilled = {
  name: "source_opcua_unfilled_gaps_total",
  help: "Gaps of one node that the server's history did not fill.",
  labels: ["source", "reason"],
} as const;

interface LookedUpGap extends HistoryRange {
  readonly gap: HistoryGap<Item>;
  /** Time of the first value found in the gap. */
  first: EpochMicros | undefined;
  /** The history reaches the end of the gap. */
  ended: boolean;
  /** The history has values of this time, those at the ends of the gap included. */
  found: boolean;
}

/** `closed`: called once a gap is final and the values found are on disk. */
export function gapFiller(options: GapFillerOptions, closed: (gap: HistoryGap<Item>) => void) {
  const { link, services, structures, runtime, source, maxGapMs, deliver } = options;
  const { clock, log, metrics } = runtime;
  const batch = new BatchSize(options.limit, 100);
  // The interval bounds the times, so the agent's clock must not reject any.
  const times: TimeOptions = { ...options.time, unusable: "keep" };
  /** Counts per item: reads of an incomplete history, and failed reads. */
  const tries = new Map<Item, { late: number; failed: number }>();

  /** Divides the gaps into fillable ones and those whose access level is unknown. Ends those without a history. */
  async function withHistory(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    if (maxGapMs === undefined) {
      await end(gaps, "backfill is off", signal);
      return { fillable: [], later: [] };
    }
    const levels = new Map<HistoryGap<Item>, DataValueLike | undefined>();
    for (const attribute of [attributes.userAccessLevel, attributes.accessLevel]) {
      // Some servers provide AccessLevel but not UserAccessLevel.
      const asked = gaps.filter((gap) => typeof levels.get(gap)?.value?.value !== "number");
      const nodes = asked.map(({ item }) => item.nodeId);
      const answers = nodes.length > 0 ? await readValues(services, nodes, signal, attribute) : [];
      for (const [i, gap] of asked.entries()) levels.set(gap, answers[i]);
    }
    const parts = Object.groupBy(gaps, (gap) => {
      const { value, statusCode: { name = "" } = {} } = levels.get(gap) ?? {};
      if (typeof value?.value === "number") return (value.value & historyReadBit) !== 0 ? "fillable" : "none";
      if (away.includes(name)) return "later";
      // Without an access level, HistoryRead itself decides.
      return name === "BadNodeIdUnknown" ? "none" : "fillable";
    });
    await end(parts.none ?? [], "no history", signal);
    return { fillable: parts.fillable ?? [], later: parts.later ?? [] };
  }

  /** Reports the final result of gaps, then closes them. `lost`: the reason; undefined: filled. */
  async function end(gaps: readonly HistoryGap<Item>[], lost: string | undefined, signal: AbortSignal): Promise<void> {
    if (gaps.length === 0) return;
    if (lost !== undefined) countUnfilled(lost, gaps.length);
    const outcomes = gaps.flatMap((gap) => tagGaps(gap, lost === undefined ? "filled" : "lost", lost ?? ""));
    const close = () => {
      for (const gap of gaps) {
        tries.delete(gap.item);
        closed(gap);
      }
    };
    await deliver([], outcomes, close, signal);
  }

  async function read(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    const earliest = epochMicros(clock.now() - (maxGapMs ?? 0) * 1_000);
    const lookedUp = gaps.map((gap): LookedUpGap => {
      const { item, from, to } = gap;
      const since = epochMicros(Math.min(to, Math.max(from, earliest)));
      return { gap, nodeId: item.nodeId, from: since, to, first: undefined, ended: false, found: false };
    });
    // Tags of one variable, such as those of the elements of an array, mostly have the same gaps.
    const same = Map.groupBy(lookedUp, ({ nodeId, from, to }) => `${nodeId.toString()} ${from} ${to}`);
    const ranges = [...same.values()].flatMap((all) => all.slice(0, 1).map((range) => ({ ...range, all })));
    const failed: HistoryGap<Item>[] = [];
    let count = 0;
    for await (const page of readHistory({ link, batch, clock }, ranges, signal)) {
      const { range, values, over, error } = page;
      for (const looked of range.all) {
        const { gap, from, to } = looked;
        const item = { ...gap.item, clockCheck: new ClockCheck() };
        await structures.learn(
          values.map((value) => [item, value] as const),
          signal,
        );
        const all = values
          .map((value) => toReading(value, item, clock.now(), times))
          .filter((each) => each !== undefined && each !== "untimed");
        looked.found ||= values.length > 0;
        looked.ended ||= all.some(({ time }) => time >= to);
        const readings = all
          .filter(({ time, clock: by }) => by === "device" && time > from && time < to)
          .map((each) => ({ ...each, historical: true }));
        looked.first ??= readings[0]?.time;
        count += readings.length;
        await deliver(readings, [], () => {}, signal);
        if (!over) continue;
        const result = resultOf(looked, earliest, error);
        if (result === "later") {
          failed.push(gap);
          log.debug({ err: error, address: gap.item.address }, "history cannot be read");
          // This delivery follows the last readings, so its acknowledgement covers them all.
        } else await end([gap], result, signal);
      }
    }
    metrics.counter(filled).add(count, { source });
    return { readings: count, failed };
  }

  /** The reason why a gap stays incomplete. Undefined: it is filled. `later`: try again. */
  function resultOf(
    { gap, first, ended, found }: LookedUpGap,
    earliest: EpochMicros,
    error: Error | undefined,
  ): string | undefined {
    const { item, from, to, valueAtEnd } = gap;
    const tried = tries.get(item) ?? { late: 0, failed: 0 };
    tries.set(item, tried);
    if (error) {
      const status = statusOf(error) ?? "failed";
      if (hopeless.includes(status)) return status;
      if (to < earliest) return "older than backfill.maxGap";
      if (++tried.failed >= mostFailures && !away.includes(status)) return status;
      countUnfilled(status, 1);
      return "later";
    }
    // The last value is missing, so earlier ones may also be written late.
    if (valueAtEnd && !ended && ++tried.late < mostAttempts) return "later";
    if (from < earliest) return "older than backfill.maxGap";
    if (valueAtEnd && !found) return "the history has no value of this time";
    const { serverStarted: started } = options;
    // A server that keeps its history in memory lost what was before its start.
    if (started !== undefined && started > from && started < to && (first === undefined || first >= started))
      return "the server restarted and its history has nothing from before";
    return undefined;
  }

  function countUnfilled(reason: string, gaps: number): void {
    metrics.counter(unfilled).add(gaps, { source, reason });
  }

  /** Fills gaps. Returns those to retry later. Rejects only if the link is lost or `signal` aborts. */
  return async function fill(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    const looked = await withHistory(gaps, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      log.debug({ err: error }, "access levels cannot be read");
      return undefined;
    });
    if (!looked) return gaps;
    const { readings, failed } = await read(looked.fillable, signal);
    log.info({ gaps: gaps.length, asked: looked.fillable.length, readings }, "gaps looked up in the server's history");
    return [...looked.later, ...failed];
  };
}
