// Fills gaps from the server's history: after an interruption, a restart or an overflow, behind the live data. What comes of
// each gap is told, also where nothing can be had.
import type { TagGap } from "../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { statusOf } from "./failure.ts";
import { type Gap, Gaps } from "./gaps.ts";
import { readHistory } from "./history.ts";
import type { HistoryMemory } from "./history-memory.ts";
import type { Item } from "./items.ts";
import type { Link } from "./link.ts";
import { portableNodeId } from "./node-address.ts";
import { ClockCheck, type TimePreference, toReading } from "./reading.ts";
import { BatchSize, type Services } from "./services.ts";
import type { Ua } from "./stack.ts";
import type { StructureTypes } from "./structure-types.ts";

export interface BackfillOptions {
  readonly ua: Ua;
  readonly link: Link;
  readonly services: Services;
  readonly structures: Pick<StructureTypes, "learn">;
  readonly runtime: Runtime;
  readonly source: string;
  /** Undefined: the history is not asked, gaps are told only. */
  readonly maxGapMs: number | undefined;
  readonly memory: HistoryMemory;
  readonly namespaces: readonly string[];
  readonly time: TimePreference;
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

export interface Arrival {
  /** The server threw values away before this one. */
  readonly overflow: boolean;
  /**
   * `new`: of a subscription that began with this connection; `kept`: of one that goes on without a gap; `former`: of one
   * that hands over what it has kept.
   */
  readonly stream: "new" | "kept" | "former";
}

/** A value that has just arrived may not be in the history yet. */
const settlingMs = 2_000;
const saveEveryMs = 30_000;
/** Gaps that could not be read are tried again so much later. */
const retryMs = 60_000;
/** Between two calls the server rests as long as it took for the last, and at least this long. */
const restMs = 20;
/** AccessLevelType (OPC 10000-3, 8.57). */
const historyReadBit = 4;
/** Statuses that trying again does not change. */
const hopeless = [
  "BadHistoryOperationUnsupported",
  "BadHistoryOperationInvalid",
  "BadServiceUnsupported",
  "BadNotReadable",
  "BadUserAccessDenied",
  "BadNodeIdUnknown",
  "BadNotSupported",
  "BadNotImplemented",
];

const filled = {
  name: "opcua_backfilled_readings_total",
  help: "Readings that were missing and came from the server's history.",
  labels: ["source"],
} as const;
const unfilled = {
  name: "opcua_unfilled_gaps_total",
  help: "Gaps of one node that the server's history did not fill.",
  labels: ["source", "reason"],
} as const;

type NodeGap = Gap<Item> & { readonly nodeId: Item["nodeId"] };

export class Backfill {
  readonly #options: BackfillOptions;
  readonly #batch: BatchSize;
  readonly #gaps = new Gaps<Item>();
  /** Nodes whose first value has told where the gap since the last connection ends. */
  readonly #begun = new WeakSet<Item>();
  readonly #keys = new WeakMap<Item, string>();
  #failed: Gap<Item>[] = [];
  #wake = Promise.withResolvers<void>();

  constructor(options: BackfillOptions) {
    this.#options = options;
    this.#batch = new BatchSize(options.limit, 100);
  }

  /**
   * Before the first value. `fresh`: the subscription begins with this connection, so that something may be missing of
   * every node; else of those only whose gaps an earlier connection did not get filled: they are given.
   */
  begin(items: readonly Item[], fresh: boolean): TagGap[] {
    const { memory, runtime } = this.#options;
    const now = runtime.clock.now();
    return items.flatMap((item) => {
      const key = this.#key(item);
      const last = memory.storedUpTo(key);
      if (fresh && last !== undefined) memory.opened(key, last);
      const since = fresh ? undefined : memory.openSince(key);
      if (since === undefined || since >= now) return [];
      this.#begun.add(item);
      return this.#open({ item, key, from: since, to: now, overflow: false });
    });
  }

  /** A value has come by the subscription. Gives the gap before it. */
  arrived(item: Item, time: EpochMicros, { overflow, stream }: Arrival): TagGap | undefined {
    const { memory } = this.#options;
    const key = this.#key(item);
    const first = stream !== "former" && !this.#begun.has(item);
    if (first) this.#begun.add(item);
    const since = first
      ? (memory.openSince(key) ?? (stream === "new" ? memory.storedUpTo(key) : undefined))
      : undefined;
    const last = since ?? (overflow ? memory.storedUpTo(key) : undefined);
    if (last === undefined) return undefined;
    if (time > last) return this.#open({ item, key, from: last, to: time, overflow: since === undefined });
    if (since !== undefined && !overflow) memory.closed(key);
    return undefined;
  }

  /** A value has come whose time nobody can tell: what was missed before it cannot be told either. */
  untimed(item: Item, now: EpochMicros, { stream }: Arrival): TagGap | undefined {
    if (stream !== "new" || this.#begun.has(item)) return undefined;
    this.#begun.add(item);
    return told({ item, key: "", from: now, to: now, overflow: false }, "lost", "the server gives no times");
  }

  /** The server has lost messages: something may be missing of each of these. */
  missed(items: readonly Item[]): TagGap[] {
    const now = this.#options.runtime.clock.now();
    return items.flatMap((item) => {
      const key = this.#key(item);
      const from = this.#options.memory.storedUpTo(key);
      return from === undefined || from >= now ? [] : this.#open({ item, key, from, to: now, overflow: true });
    });
  }

  /** A value that has come is on disk. */
  stored(item: Item, time: EpochMicros): void {
    this.#options.memory.stored(this.#key(item), time);
  }

  /** Fills gaps and writes down how far the values are stored, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<never> {
    return await Promise.race([this.#fillAll(signal), this.#saveAgainAndAgain(signal), this.#retry(signal)]);
  }

  /** Writes down how far the values are stored. Rejects when the disk does. */
  save(): Promise<void> {
    return this.#options.memory.save();
  }

  #open(gap: Gap<Item>): TagGap {
    this.#options.memory.opened(gap.key, gap.from);
    this.#gaps.add(gap);
    this.#wake.resolve();
    return told(gap, "open", gap.overflow ? "the server's queue was full" : "nobody was connected");
  }

  async #saveAgainAndAgain(signal: AbortSignal): Promise<never> {
    const { runtime } = this.#options;
    for (;;) {
      await runtime.clock.sleep(saveEveryMs, signal);
      await this.save().catch((error: unknown) => {
        runtime.log.warn({ err: error }, "how far values are stored cannot be written down");
      });
    }
  }

  async #retry(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#options.runtime.clock.sleep(retryMs, signal);
      for (const gap of this.#failed.splice(0)) this.#gaps.giveBack(gap);
      if (this.#gaps.size > 0) this.#wake.resolve();
    }
  }

  async #fillAll(signal: AbortSignal): Promise<never> {
    const { runtime } = this.#options;
    for (;;) {
      await this.#someGap(signal);
      await runtime.clock.sleep(settlingMs, signal);
      const gaps = this.#gaps.take();
      const fillable = await this.#withHistory(gaps, signal).catch((error: unknown): Gap<Item>[] => {
        signal.throwIfAborted();
        runtime.log.debug({ err: error }, "access levels cannot be read");
        this.#failed.push(...gaps);
        return [];
      });
      const readings = await this.#fill(fillable, signal);
      runtime.log.info(
        { gaps: gaps.length, filled: fillable.length, readings },
        "gaps looked up in the server's history",
      );
    }
  }

  /** Those of the gaps whose node has a history that may be read, and that is asked. */
  async #withHistory(gaps: readonly Gap<Item>[], signal: AbortSignal): Promise<Gap<Item>[]> {
    const { ua, services, maxGapMs } = this.#options;
    if (maxGapMs === undefined) {
      await this.#lost(gaps, "backfill is off", signal);
      return [];
    }
    const targets = gaps.map(({ item }) => ({ nodeId: item.nodeId, attributeId: ua.AttributeIds.UserAccessLevel }));
    const levels = await services.read(targets, signal);
    const readable = gaps.filter((_, i) => {
      const level = levels[i]?.value?.value;
      return typeof level === "number" && (level & historyReadBit) !== 0;
    });
    const some = new Set(readable);
    await this.#lost(
      gaps.filter((gap) => !some.has(gap)),
      "no history",
      signal,
    );
    return readable;
  }

  async #lost(gaps: readonly Gap<Item>[], reason: string, signal: AbortSignal): Promise<void> {
    if (gaps.length === 0) return;
    for (const { key } of gaps) {
      this.#unfilled(reason);
      this.#close(key);
    }
    await this.#options.deliver(
      [],
      gaps.map((gap) => told(gap, "lost", reason)),
      () => {},
      signal,
    );
  }

  async #someGap(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      signal.throwIfAborted();
      while (this.#gaps.size === 0) {
        this.#wake = Promise.withResolvers();
        await Promise.race([this.#wake.promise, aborted.promise]);
      }
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Fills gaps. What fails for now is tried again, also by a later connection; it never ends the source. */
  async #fill(gaps: readonly Gap<Item>[], signal: AbortSignal): Promise<number> {
    const { ua, link, runtime, source, maxGapMs = 0, structures, deliver, time: prefer } = this.#options;
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
    const reading = { ua, link, batch: this.#batch, rest, nowMs: () => clock.monotonic() };
    let count = 0;
    for await (const { range, values, over, error } of readHistory(reading, ranges, signal)) {
      const gap = whole.get(range) ?? range;
      const item = { ...range.item, clockCheck: new ClockCheck() };
      await structures.learn(
        values.map((value) => [range.item, value] as const),
        signal,
      );
      const readings = values
        .flatMap((value) => toReading(value, item, clock.now(), prefer) ?? [])
        .filter(({ time, clock: by }) => by === "device" && time > range.from && time < range.to)
        .map((each) => ({ ...each, historical: true }));
      const [first] = readings;
      if (first && !firsts.has(range)) firsts.set(range, first.time);
      count += readings.length;
      await deliver(readings, [], () => {}, signal);
      if (!over) continue;
      const verdict = this.#verdict(gap, earliest, firsts.get(range), error);
      if (verdict === undefined) {
        this.#failed.push(gap);
        runtime.log.debug({ err: error, address: gap.item.address }, "history cannot be read");
      } else if (verdict !== "filled") await this.#lost([gap], verdict, signal);
      // Behind the last of them: once this is acknowledged they all are.
      else await deliver([], [told(gap, "filled", "")], () => this.#close(gap.key), signal);
    }
    metrics.counter(filled).add(count, { source });
    return count;
  }

  /** `filled`, or why not all of it can be had; undefined: it may be, later. */
  #verdict(
    { from, to }: Gap<Item>,
    earliest: EpochMicros,
    first: EpochMicros | undefined,
    error: Error | undefined,
  ): string | undefined {
    if (error) {
      const status = statusOf(error) ?? "failed";
      if (hopeless.includes(status)) return status;
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

  #close(key: string): void {
    if (this.#gaps.close(key)) this.#options.memory.closed(key);
  }

  #unfilled(reason: string): void {
    const { runtime, source } = this.#options;
    runtime.metrics.counter(unfilled).add(1, { source, reason });
  }

  #key(item: Item): string {
    const known = this.#keys.get(item);
    if (known !== undefined) return known;
    const element = item.index === undefined ? "" : `[${item.index.join()}]`;
    const field = item.field === undefined ? "" : `.${JSON.stringify(item.field)}`;
    const key = portableNodeId(item.nodeId.toString(), this.#options.namespaces) + element + field;
    this.#keys.set(item, key);
    return key;
  }
}

function told({ item, from, to, overflow }: Gap<Item>, state: TagGap["state"], reason: string): TagGap {
  const { tag, captures } = item;
  return { tag, captures, from, to, cause: overflow ? "overflow" : "interruption", state, reason };
}
