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
import { readHistory } from "./history.ts";

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

/** Between two calls the server rests as long as it took for the last, and at least this long. */
const restMs = 20;
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

type NodeGap = HistoryGap<Item> & { readonly nodeId: Item["nodeId"] };

export class GapFiller {
  readonly #options: GapFillerOptions;
  readonly #batch: BatchSize;
  /** Nothing more will become of a gap: called once what was found is on disk. */
  readonly #close: (gap: HistoryGap<Item>) => void;
  /** How often a history that is behind was asked. */
  readonly #attempts = new Map<Item, number>();
  /** How often the history of a gap failed. */
  readonly #failures = new Map<Item, number>();

  constructor(options: GapFillerOptions, close: (gap: HistoryGap<Item>) => void) {
    this.#options = options;
    this.#batch = new BatchSize(options.limit, 100);
    this.#close = (gap) => {
      this.#attempts.delete(gap.item);
      this.#failures.delete(gap.item);
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
      await this.#lost(gaps, "backfill is off", signal);
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
    const {
      fillable = [],
      later = [],
      none = [],
    } = Object.groupBy(gaps, (gap) => {
      const { value, statusCode: { name = "" } = {} } = levels.get(gap) ?? {};
      if (typeof value?.value === "number") return (value.value & historyReadBit) !== 0 ? "fillable" : "none";
      if (away.includes(name)) return "later";
      // What the level does not say the history does.
      return name === "BadNodeIdUnknown" ? "none" : "fillable";
    });
    await this.#lost(none, "no history", signal);
    return { fillable, later };
  }

  async #lost(gaps: readonly HistoryGap<Item>[], reason: string, signal: AbortSignal): Promise<void> {
    if (gaps.length === 0) return;
    for (const _ of gaps) this.#unfilled(reason);
    // Closed when it is told, as with those that are filled: else nobody would tell of it again.
    const close = () => {
      for (const gap of gaps) this.#close(gap);
    };
    await this.#options.deliver(
      [],
      gaps.flatMap((gap) => tagGaps(gap, "lost", reason)),
      close,
      signal,
    );
  }

  async #read(gaps: readonly HistoryGap<Item>[], signal: AbortSignal) {
    const { link, runtime, source, maxGapMs = 0, structures, deliver, time } = this.#options;
    // The interval that is read bounds the times, not the clock of the agent.
    const times: TimeOptions = { ...time, unusable: "keep" };
    const { clock, metrics } = runtime;
    const earliest = epochMicros(clock.now() - maxGapMs * 1_000);
    const ranges: NodeGap[] = gaps.map((gap) => ({
      ...gap,
      nodeId: gap.item.nodeId,
      from: epochMicros(Math.min(gap.to, Math.max(gap.from, earliest))),
    }));
    const whole = new Map(ranges.map((range, i) => [range, gaps[i] ?? range]));
    /** Time of the first value that each had in the history. */
    const firsts = new Map<NodeGap, EpochMicros>();
    const rest = (lastMs: number) => clock.sleep(Math.max(restMs, lastMs), signal);
    const reading = { link, batch: this.#batch, rest, nowMs: () => clock.monotonic() };
    /** Those whose history reaches to their ends. */
    const ended = new Set<NodeGap>();
    const failed: HistoryGap<Item>[] = [];
    let count = 0;
    for await (const { range, values, over, error } of readHistory(reading, ranges, signal)) {
      const gap = whole.get(range) ?? range;
      const item = { ...range.item, clockCheck: new ClockCheck() };
      await structures.learn(
        values.map((value) => [range.item, value] as const),
        signal,
      );
      const all = values.flatMap((value) => readingOf(value, item, clock.now(), times));
      if (all.some(({ time }) => time >= range.to)) ended.add(range);
      const readings = all
        .filter(({ time, clock: by }) => by === "device" && time > range.from && time < range.to)
        .map((each) => ({ ...each, historical: true }));
      const [first] = readings;
      if (first && !firsts.has(range)) firsts.set(range, first.time);
      count += readings.length;
      await deliver(readings, [], () => {}, signal);
      if (!over) continue;
      const verdict = this.#isBehind(gap, ended.has(range), error)
        ? undefined
        : this.#verdict(gap, earliest, firsts.get(range), error);
      if (verdict === undefined) {
        failed.push(gap);
        runtime.log.debug({ err: error, address: gap.item.address }, "history cannot be read");
      } else if (verdict !== "filled") await this.#lost([gap], verdict, signal);
      // Behind the last of them: once this is acknowledged they all are.
      else await deliver([], tagGaps(gap, "filled", ""), () => this.#close(gap), signal);
    }
    metrics.counter(filled).add(count, { source });
    return { readings: count, failed };
  }

  /** Whether the history lacks the value that is known to be at the end: what came before it may be on the way there, too. */
  #isBehind({ item, valueAtEnd }: HistoryGap<Item>, ended: boolean, error: Error | undefined): boolean {
    if (!valueAtEnd || ended || error) return false;
    const attempts = (this.#attempts.get(item) ?? 0) + 1;
    this.#attempts.set(item, attempts);
    return attempts < mostAttempts;
  }

  /** `filled`, or why not all of it can be had; undefined: it may be, later. */
  #verdict(
    { item, from, to }: HistoryGap<Item>,
    earliest: EpochMicros,
    first: EpochMicros | undefined,
    error: Error | undefined,
  ): string | undefined {
    if (error) {
      const status = statusOf(error) ?? "failed";
      if (hopeless.includes(status)) return status;
      if (to < earliest) return "older than backfill.maxGap";
      const failures = (this.#failures.get(item) ?? 0) + 1;
      this.#failures.set(item, failures);
      if (failures >= mostFailures && !away.includes(status)) return status;
      this.#unfilled(status);
      return undefined;
    }
    if (from < earliest) return "older than backfill.maxGap";
    const { serverStarted: started } = this.#options;
    // Who keeps its history in memory has none of the time before it started.
    if (started !== undefined && started > from && started < to && (first === undefined || first >= started))
      return "the server started anew and its history has nothing from before";
    return "filled";
  }

  #unfilled(reason: string): void {
    const { runtime, source } = this.#options;
    runtime.metrics.counter(unfilled).add(1, { source, reason });
  }
}

function readingOf(...given: Parameters<typeof toReading>): Reading[] {
  const reading = toReading(...given);
  return reading === undefined || reading === "untimed" ? [] : [reading];
}
