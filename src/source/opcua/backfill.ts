// Fills gaps from the server's history: after an interruption, a restart or an overflow, node by node, behind the live data.
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
import { ClockCheck, toReading } from "./reading.ts";
import type { Services } from "./services.ts";
import type { Ua } from "./stack.ts";
import type { StructureTypes } from "./structure-types.ts";

export interface BackfillOptions {
  readonly ua: Ua;
  readonly link: Link;
  readonly services: Services;
  readonly structures: Pick<StructureTypes, "learn">;
  readonly runtime: Runtime;
  readonly source: string;
  readonly maxGapMs: number;
  readonly memory: HistoryMemory;
  readonly namespaces: readonly string[];
  /** Takes readings over when there is room. `stored` is called once they are on disk. */
  readonly deliver: (readings: readonly Reading[], stored: () => void, signal: AbortSignal) => Promise<void>;
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
const saveEveryMs = 10_000;
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

export class Backfill {
  readonly #options: BackfillOptions;
  readonly #gaps = new Gaps<Item>();
  /** Nodes whose first live value has told where the gap since the last connection ends. */
  readonly #begun = new WeakSet<Item>();
  readonly #keys = new WeakMap<Item, string>();
  #wake = Promise.withResolvers<void>();

  constructor(options: BackfillOptions) {
    this.#options = options;
  }

  /** Gaps that wait to be filled. */
  get waiting(): number {
    return this.#gaps.size;
  }

  /** A value has come by the subscription. */
  arrived(item: Item, time: EpochMicros, { overflow, stream }: Arrival): void {
    const { memory, maxGapMs, runtime } = this.#options;
    const key = this.#key(item);
    const last = memory.storedUpTo(key);
    const ends = overflow || (stream === "new" && !this.#begun.has(item));
    if (last !== undefined && ends && time > last) {
      const earliest = epochMicros(runtime.clock.now() - maxGapMs * 1_000);
      if (last < earliest) this.#unfilled("older than maxGap");
      this.#gaps.add({ item, key, from: epochMicros(Math.max(last, earliest)), to: time });
      memory.opened(key, last);
      this.#wake.resolve();
    }
    if (stream === "new") this.#begun.add(item);
  }

  /** A value that has come is on disk. */
  stored(item: Item, time: EpochMicros): void {
    this.#options.memory.stored(this.#key(item), time);
  }

  /** Fills gaps and writes down how far the values are stored, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<never> {
    return await Promise.race([this.#fillAll(signal), this.#saveAgainAndAgain(signal)]);
  }

  /** Writes down how far the values are stored. Rejects when the disk does. */
  save(): Promise<void> {
    return this.#options.memory.save();
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

  async #fillAll(signal: AbortSignal): Promise<never> {
    const { runtime } = this.#options;
    for (;;) {
      await this.#someGap(signal);
      await runtime.clock.sleep(settlingMs, signal);
      const gaps = this.#gaps.take();
      const fillable = await this.#withHistory(gaps, signal).catch((error: unknown): Gap<Item>[] => {
        signal.throwIfAborted();
        // They stay open for the next connection.
        runtime.log.debug({ err: error }, "access levels cannot be read");
        return [];
      });
      let readings = 0;
      for (const gap of fillable) readings += await this.#fill(gap, signal);
      runtime.log.info(
        { gaps: gaps.length, filled: fillable.length, readings },
        "gaps looked up in the server's history",
      );
    }
  }

  /** Those of the gaps whose node has a history that may be read. */
  async #withHistory(gaps: readonly Gap<Item>[], signal: AbortSignal): Promise<Gap<Item>[]> {
    const { ua, services } = this.#options;
    const targets = gaps.map(({ item }) => ({ nodeId: item.nodeId, attributeId: ua.AttributeIds.UserAccessLevel }));
    const levels = await services.read(targets, signal);
    return gaps.filter(({ key }, i) => {
      const level = levels[i]?.value?.value;
      const readable = typeof level === "number" && (level & historyReadBit) !== 0;
      if (!readable) {
        this.#unfilled("no history");
        this.#close(key);
      }
      return readable;
    });
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

  /** Fills one gap. What fails for now stays open for the next connection; it never ends the source. */
  async #fill({ item, key, from, to }: Gap<Item>, signal: AbortSignal): Promise<number> {
    const { ua, link, runtime, source, structures, deliver } = this.#options;
    let count = 0;
    try {
      for await (const values of readHistory(ua, link, item.nodeId, from, to, signal)) {
        const now = runtime.clock.now();
        await structures.learn(
          values.map((value) => [item, value] as const),
          signal,
        );
        const readings = values
          .flatMap((value) => toReading(value, { ...item, clockCheck: new ClockCheck() }, now, "source") ?? [])
          .filter(({ time, clock }) => clock === "device" && time > from && time < to)
          .map((reading) => ({ ...reading, historical: true }));
        count += readings.length;
        await deliver(readings, () => {}, signal);
      }
      runtime.metrics.counter(filled).add(count, { source });
      // Behind the last of them: once this is acknowledged they all are.
      await deliver([], () => this.#close(key), signal);
    } catch (error) {
      signal.throwIfAborted();
      const status = statusOf(error) ?? "failed";
      this.#unfilled(status);
      if (hopeless.includes(status)) this.#close(key);
      runtime.log.debug({ err: error, address: item.address }, "history cannot be read");
    }
    return count;
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
