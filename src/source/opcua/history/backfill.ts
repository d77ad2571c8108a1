// Detects gaps after an interruption, restart or overflow, and fills them from the server's history.

import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { TagGap } from "../../../core/source.ts";
import { HandOver } from "../../../lib/flow/abort.ts";
import { portableNodeId } from "../config/node-address.ts";
import { type Item, partOf } from "../nodes/items.ts";
import { type GapFillerOptions, gapFiller } from "./gap-filler.ts";
import { type Cause, Gaps, type HistoryGap, tagGaps } from "./gaps.ts";
import type { HistoryMemory } from "./history-memory.ts";

export interface BackfillOptions extends GapFillerOptions {
  readonly memory: HistoryMemory;
  readonly namespaces: readonly string[];
}

export interface Arrival {
  /** The server discarded values before this one. */
  readonly overflow: boolean;
  /** Time of arrival; default: now. */
  readonly at?: EpochMicros;
  /** `former`: from a former subscription, or old. Such a value does not show current gaps. */
  readonly stream: "live" | "former";
}

/** Delay until a recent value is in the history. */
const settlingMs = 2_000;
const saveEveryMs = 30_000;
/** A closed gap is saved within this time. After a crash, an unsaved one would be reported again. */
const saveClosedMs = 1_000;
const retryMs = 60_000;
/** Microseconds after connecting within which values flow again. */
const flowingWithinUs = 10e6;
/** Microseconds by which a value must be older than stored ones to show that the server's clock was set back. */
const setBackUs = 60e6;
/** Tolerated disorder of a variable's times in microseconds, as between two servers of a set. */
const disorderUs = 2e6;
const setBack = "the server's clock was set back";
const interruption: ReadonlySet<Cause> = new Set<Cause>(["interruption"]);
const overflowing: ReadonlySet<Cause> = new Set<Cause>(["overflow"]);
const nothing: readonly TagGap[] = [];

interface Past {
  readonly key: string;
  /** Index in the memory, once a value is on disk. */
  place: number | undefined;
  /** The first value has shown where the gap since the last connection ends. */
  begun: boolean;
  /** The item was monitored without interruption since the last connection. */
  kept: boolean;
  /** The server kept only one value in the meantime and does not report discarded ones. */
  brief: boolean;
  /** No recovery was in progress when it began, so no result has to be reported. */
  clean: boolean;
}

export type Backfill = ReturnType<typeof openBackfill>;

export function openBackfill(options: BackfillOptions) {
  const gaps = new Gaps<Item>();
  const pasts = new WeakMap<Item, Past>();
  /** Node → sampling of its first tag. Tags with another sampling get their own key. */
  const samplings = new Map<string, string>();
  /** Time of the first value of each node without values on disk. */
  const firsts = new Map<string, EpochMicros>();
  /** Largest observed lead of the server's clock over the agent's, in microseconds. */
  let ahead = 0;
  const failures: HistoryGap<Item>[] = [];
  const handOver = new HandOver();
  const connected = options.runtime.clock.now();
  const fill = gapFiller(options, ({ key }) => {
    if (gaps.close(key)) options.memory.closed(key);
  });

  /** No value of the node is missing before this time. */
  function knownUpTo({ key, place }: Past): EpochMicros | undefined {
    const { memory } = options;
    return place === undefined ? (memory.storedUpTo(key) ?? firsts.get(key)) : memory.storedAt(place);
  }

  function open(gap: HistoryGap<Item>): TagGap[] {
    options.memory.opened(gap.key, gap.from, gap.causes);
    gaps.add(gap);
    handOver.notify();
    return tagGaps(
      gap,
      "open",
      gap.causes.has("overflow") ? "the server's queue was full" : "the source was not connected",
    );
  }

  function pastOf(item: Item): Past {
    const known = pasts.get(item);
    if (known) return known;
    const node = portableNodeId(item.nodeId.toString(), options.namespaces) + partOf(item);
    const { every, deadband, trigger } = item;
    const sampling = JSON.stringify([every, deadband?.kind, deadband?.value, trigger]);
    if (!samplings.has(node)) samplings.set(node, sampling);
    const key = sampling === samplings.get(node) ? node : `${node} ${sampling}`;
    const past: Past = { key, place: undefined, begun: false, kept: false, brief: false, clean: false };
    pasts.set(item, past);
    return past;
  }

  /** Persists positions and gaps. Logs a disk error and returns false. */
  async function save(): Promise<boolean> {
    const { memory, runtime } = options;
    try {
      await memory.save();
      return true;
    } catch (error) {
      runtime.log.warn({ err: error }, "cannot persist the positions of stored values");
      return false;
    }
  }

  return {
    save,
    /**
     * Call before the first value. `fresh`: values may be missing since the last connection. `brief`: also, as the server
     * kept only one value. `kept`: returns unfilled gaps of earlier connections.
     */
    begin(items: readonly Item[], state: "fresh" | "brief" | "kept"): TagGap[] {
      const { memory, runtime } = options;
      const now = runtime.clock.now();
      return items.flatMap((item) => {
        const past = pastOf(item);
        const { key } = past;
        const [last, since] = [memory.storedUpTo(key), memory.openSince(key)];
        past.brief = state === "brief";
        past.kept = state === "kept";
        past.clean = since === undefined;
        if (!past.kept) {
          if (last !== undefined) memory.opened(key, last, interruption);
          return [];
        }
        // A gap opened from now on, before the first value, does not belong to an earlier connection.
        past.begun = since === undefined || since < now;
        if (since === undefined || since >= now) return [];
        return open({ item, key, from: since, to: now, causes: memory.causesOf(key), valueAtEnd: false });
      });
    },
    /** Processes a received value. Returns the gap before it, once per cause. */
    arrived(item: Item, time: EpochMicros, { overflow: said, stream, at }: Arrival): readonly TagGap[] {
      const { memory, runtime } = options;
      const past = pastOf(item);
      const { key } = past;
      ahead = Math.max(ahead, time - (at ?? runtime.clock.now()));
      const known = knownUpTo(past);
      // The value may have waited at the server for this connection.
      const hasWaited = time - ahead < connected + flowingWithinUs;
      const overflow = said || (past.brief && hasWaited && (known ?? time) < connected);
      if (known === undefined) firsts.set(key, time);
      const first = stream !== "former" && !past.begun;
      if (!first && !overflow && known !== undefined && known - time <= setBackUs) return nothing;
      if (first) past.begun = true;
      const since = first ? (memory.openSince(key) ?? (past.kept ? undefined : memory.storedUpTo(key))) : undefined;
      const causes = since === undefined ? overflowing : new Set([...memory.causesOf(key), ...interruption]);
      if (stream !== "former" && known !== undefined && known - time > setBackUs) {
        // Otherwise all values would seem stored until the clock catches up, and gaps would go unnoticed.
        memory.setBack(key, time);
        return since === undefined && !overflow
          ? []
          : tagGaps({ item, from: time, to: known, causes }, "lost", setBack);
      }
      const last = since ?? (overflow ? known : undefined);
      if (last === undefined) return [];
      if (time > last) return open({ item, key, from: last, to: time, causes, valueAtEnd: true });
      if (last - time > disorderUs && stream !== "former") {
        // The times of missing values are unknown, so the history cannot be read.
        if (since !== undefined) memory.closed(key);
        return tagGaps({ item, from: time, to: last, causes }, "lost", setBack);
      }
      if (since === undefined || overflow) return [];
      // The value has not changed. If the gap was reported as open, report it as filled.
      const isReported = memory.openSince(key) !== undefined && !past.clean;
      memory.closed(key);
      const to = epochMicros(Math.max(since, runtime.clock.now() + ahead));
      return isReported ? tagGaps({ item, from: since, to, causes }, "filled", "") : [];
    },
    /** A value without a usable time was received, so the values missed before it are unknown. */
    untimed(item: Item, now: EpochMicros, { overflow, stream }: Arrival): readonly TagGap[] {
      const past = pastOf(item);
      const first = stream !== "former" && !past.kept && !past.begun;
      if (first) past.begun = true;
      else if (!overflow) return [];
      const causes = first ? interruption : overflowing;
      return tagGaps({ item, from: now, to: now, causes }, "lost", "the server gives no times");
    },
    /** Opens gaps for items whose messages the server has lost. */
    missed(items: readonly Item[]): TagGap[] {
      const now = options.runtime.clock.now();
      const to = epochMicros(now + ahead);
      return items.flatMap((item) => {
        const past = pastOf(item);
        const { key } = past;
        const from = knownUpTo(past);
        if (from === undefined)
          return tagGaps({ item, from: now, to: now, causes: overflowing }, "lost", "the times are not known");
        if (from >= to) return [];
        return open({ item, key, from, to, causes: overflowing, valueAtEnd: false });
      });
    },
    /** The server did not monitor the items for a while. The next value of each shows where its gap ends. */
    interrupted(items: readonly Item[]): void {
      for (const item of items) {
        const past = pastOf(item);
        const from = knownUpTo(past);
        past.begun = false;
        past.kept = false;
        if (from !== undefined) options.memory.opened(past.key, from, interruption);
      }
    },
    stored(item: Item, time: EpochMicros): void {
      const past = pastOf(item);
      past.place = options.memory.stored(past.key, time, past.place);
    },
    /**
     * Fills gaps and persists stored positions until `signal` aborts. A failed gap is retried and never ends the source.
     */
    async run(signal: AbortSignal): Promise<never> {
      const { memory, runtime } = options;
      const rest = (ms: number) => runtime.clock.sleep(ms, signal);
      const filling = async () => {
        for (;;) {
          await handOver.take(() => gaps.size > 0 || undefined, signal);
          await rest(settlingMs);
          failures.push(...(await fill(gaps.take(), signal)));
        }
      };
      const saving = async () => {
        for (;;) {
          for (let ms = 0; ms < saveEveryMs && !memory.outdated; ms += saveClosedMs) await rest(saveClosedMs);
          await save();
          // Keep this interval also if the disk fails.
          await rest(saveClosedMs);
        }
      };
      const retrying = async () => {
        for (;;) {
          await rest(retryMs);
          for (const gap of failures.splice(0)) gaps.giveBack(gap);
          if (gaps.size > 0) handOver.notify();
        }
      };
      return await Promise.race([filling(), saving(), retrying()]);
    },
    /** Calls `settle` once all gaps are persisted. Never on a disk error: the message is then resent. */
    remembered(settle: () => void): void {
      if (!options.memory.forgetful) settle();
      else void save().then((saved) => saved && settle());
    },
  };
}
