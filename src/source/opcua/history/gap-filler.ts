// Asks the server's history for what is missing of nodes, hands over what it finds, and tells what came of each gap.
import type { TagGap } from "../../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Reading } from "../../../core/source.ts";
import type { Item } from "../nodes/items.ts";
import type { StructureTypes } from "../nodes/structure-types.ts";
import { statusOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import { attributes, BatchSize, readValues, type Services } from "../session/services.ts";
import { ClockCheck, type DataValueLike, type TimeOptions, toReading } from "../types/reading.ts";
import { type HistoryGap, tagGaps } from "./gaps.ts";
import { type HistoryRange, readHistory } from "./history.ts";

export interface GapFillerOptions {
  readonly link: Link;
  readonly services: Services;
  readonly structures: Pick<StructureTypes, "learn">;
  readonly runtime: Runtime;
  readonly source: string;
  /** Undefined: the history is not asked, gaps are told only. */
  readonly maxGapMs: number | undefined;
  readonly time: TimeOptions;
  /** When the server started, by its own clock. Undefined: it does not tell. */
  readonly serverStarted: EpochMicros | undefined;
  /** Nodes in one call that the server allows; 0: it does not tell. */
  readonly limit: number;
  /** Takes readings over when there is room, and tells of gaps behind them. `stored` is called once they are on disk. */
  readonly deliver: (
    readings: readonly Reading[],
    gaps: readonly TagGap[],
    stored: () => void,
    signal: AbortSignal,
  ) => Promise<void>;
}

/** So often a history is asked that has not got yet what came last: some are written late. */
const mostAttempts = 3;
/** AccessLevelType (OPC 10000-3, 8.57). */
const historyReadBit = 4;
/** So often a gap is tried whose history fails for a reason that may go away: a minute each, then it is lost. */
const mostFailures = 10;
/** Statuses of a device behind the server that is away: its history is asked again however long that takes. */
const away = [
  "BadNotConnected",
  "BadServerNotConnected",
  "BadNoCommunication",
  "BadCommunicationError",
  "BadDeviceFailure",
  "BadOutOfService",
  "BadWaitingForInitialData",
];
/** Statuses that trying again does not change. */
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

interface Looked extends HistoryRange {
  readonly gap: HistoryGap<Item>;
  /** Time of the first value that it had in the history. */
  first: EpochMicros | undefined;
  /** Its history reaches to its end. */
  ended: boolean;
}

export class GapFiller {
  readonly #options: GapFillerOptions;
  readonly #batch: BatchSize;
  /** Nothing more will become of a gap: called once what was found is on disk. */
  readonly #close: (gap: HistoryGap<Item>) => void;
  /** How often the history of a gap was behind, and how often it failed. */
  readonly #tries = new Map<Item, { late: number; failed: number }>();

  constructor(options: GapFillerOptions, close: (gap: HistoryGap<Item>) => void) {
    this.#options = options;
    this.#batch = new BatchSize(options.limit, 100);
    this.#close = (gap) => {
      this.#tries.delete(gap.item);
      close(gap);
    };
  }

  /** Gives the gaps that may be filled later. Rejects only when the link is lost or `signal` aborts. */
  async fill(gaps: readonly HistoryGap<Item>[], signal: AbortSignal): Promise<readonly HistoryGap<Item>[]> {
    const { log } = this.#options.runtime;
    const looked = await this.#withHistory(gaps, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      log.debug({ err: error }, "access levels cannot be read");
      return undefined;
    });
    if (!looked) return gaps;
    const { fillable, later } = looked;
    const { readings, failed } = await this.#read(fillable, signal);
    log.info({ gaps: gaps.length, asked: fillable.length, readings }, "gaps looked up in the server's history");
    return [...later, ...failed];
  }

  /** Those of the gaps whose node has a history that may be read, and that is asked; and those of which it is not known. */
  async #withHistory(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    const { services, maxGapMs } = this.#options;
    if (maxGapMs === undefined) {
      await this.#end(gaps, "backfill is off", signal);
      return { fillable: [], later: [] };
    }
    const levels = new Map<HistoryGap<Item>, DataValueLike | undefined>();
    for (const attribute of [attributes.userAccessLevel, attributes.accessLevel]) {
      // Servers were seen that give no user's level, and the level itself.
      const asked = gaps.filter((gap) => typeof levels.get(gap)?.value?.value !== "number");
      const nodes = asked.map(({ item }) => item.nodeId);
      const answers = nodes.length > 0 ? await readValues(services, nodes, signal, attribute) : [];
      for (const [i, gap] of asked.entries()) levels.set(gap, answers[i]);
    }
    const parts = Object.groupBy(gaps, (gap) => {
      const { value, statusCode: { name = "" } = {} } = levels.get(gap) ?? {};
      if (typeof value?.value === "number") return (value.value & historyReadBit) !== 0 ? "fillable" : "none";
      if (away.includes(name)) return "later";
      // What the level does not say the history does.
      return name === "BadNodeIdUnknown" ? "none" : "fillable";
    });
    await this.#end(parts.none ?? [], "no history", signal);
    return { fillable: parts.fillable ?? [], later: parts.later ?? [] };
  }

  /**
   * Reports the result of gaps, and closes them after that, because no later report follows. `lost`: the reason;
   * undefined: filled.
   */
  async #end(gaps: readonly HistoryGap<Item>[], lost: string | undefined, signal: AbortSignal): Promise<void> {
    if (gaps.length === 0) return;
    if (lost !== undefined) this.#unfilled(lost, gaps.length);
    const told = gaps.flatMap((gap) => tagGaps(gap, lost === undefined ? "filled" : "lost", lost ?? ""));
    const close = () => {
      for (const gap of gaps) this.#close(gap);
    };
    await this.#options.deliver([], told, close, signal);
  }

  async #read(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    const { link, runtime, source, maxGapMs = 0, structures, deliver, time } = this.#options;
    // The interval that is read bounds the times, not the clock of the agent.
    const times: TimeOptions = { ...time, unusable: "keep" };
    const { clock, log, metrics } = runtime;
    const earliest = epochMicros(clock.now() - maxGapMs * 1_000);
    const ranges = gaps.map((gap): Looked => {
      const { item, from, to } = gap;
      const since = epochMicros(Math.min(to, Math.max(from, earliest)));
      return { gap, nodeId: item.nodeId, from: since, to, first: undefined, ended: false };
    });
    const failed: HistoryGap<Item>[] = [];
    let count = 0;
    for await (const page of readHistory({ link, batch: this.#batch, clock }, ranges, signal)) {
      const { range, values, over, error } = page;
      const { gap, from, to } = range;
      const item = { ...gap.item, clockCheck: new ClockCheck() };
      await structures.learn(
        values.map((value) => [item, value] as const),
        signal,
      );
      const all = values
        .map((value) => toReading(value, item, clock.now(), times))
        .filter((each) => each !== undefined && each !== "untimed");
      range.ended ||= all.some(({ time }) => time >= to);
      const readings = all
        .filter(({ time, clock: by }) => by === "device" && time > from && time < to)
        .map((each) => ({ ...each, historical: true }));
      range.first ??= readings[0]?.time;
      count += readings.length;
      await deliver(readings, [], () => {}, signal);
      if (!over) continue;
      const verdict = this.#verdict(range, earliest, error);
      if (verdict === "later") {
        failed.push(gap);
        log.debug({ err: error, address: gap.item.address }, "history cannot be read");
        // Behind the last of the readings: once this is acknowledged they all are.
      } else await this.#end([gap], verdict, signal);
    }
    metrics.counter(filled).add(count, { source });
    return { readings: count, failed };
  }

  /** Why not all of a gap can be had; undefined: it is filled. `later`: more of it may be had then. */
  #verdict({ gap, first, ended }: Looked, earliest: EpochMicros, error: Error | undefined): string | undefined {
    const { item, from, to, valueAtEnd } = gap;
    const tries = this.#tries.get(item) ?? { late: 0, failed: 0 };
    this.#tries.set(item, tries);
    if (error) {
      const status = statusOf(error) ?? "failed";
      if (hopeless.includes(status)) return status;
      if (to < earliest) return "older than backfill.maxGap";
      if (++tries.failed >= mostFailures && !away.includes(status)) return status;
      this.#unfilled(status, 1);
      return "later";
    }
    // What came before the value that is known to be at the end may be on the way there, too.
    if (valueAtEnd && !ended && ++tries.late < mostAttempts) return "later";
    if (from < earliest) return "older than backfill.maxGap";
    const { serverStarted: started } = this.#options;
    // Who keeps its history in memory has none of the time before it started.
    if (started !== undefined && started > from && started < to && (first === undefined || first >= started))
      return "the server restarted and its history has nothing from before";
    return undefined;
  }

  #unfilled(reason: string, gaps: number): void {
    const { runtime, source } = this.#options;
    runtime.metrics.counter(unfilled).add(gaps, { source, reason });
  }
}
