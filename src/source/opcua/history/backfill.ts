// Notices what is missing, after an interruption, a restart or an overflow, and has it filled from the server's history,
// behind the live data.
import type { TagGap } from "../../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import { HandOver } from "../../../lib/hand-over.ts";
import { portableNodeId } from "../config/node-address.ts";
import type { Item } from "../nodes/items.ts";
import { GapFiller, type GapFillerOptions } from "./gap-filler.ts";
import { type Cause, Gaps, type HistoryGap, tagGaps } from "./gaps.ts";
import type { HistoryMemory } from "./history-memory.ts";

export interface BackfillOptions extends GapFillerOptions {
  readonly memory: HistoryMemory;
  readonly namespaces: readonly string[];
}

export interface Arrival {
  /** The server threw values away before this one. */
  readonly overflow: boolean;
  /** When it came; now unless given. */
  readonly at?: EpochMicros;
  /** `former`: of a subscription that hands over what it has kept, or old; it tells nothing of what is missing now. */
  readonly stream: "live" | "former";
}

/** A value that has just arrived may not be in the history yet. */
const settlingMs = 2_000;
const saveEveryMs = 30_000;
/** A closed gap is written within this time: a killed agent would report it again, up to the time of its restart. */
const saveClosedMs = 1_000;
/** Gaps that could not be read are tried again so much later. */
const retryMs = 60_000;
/** Values flow again within this time after a connection was made, in microseconds. */
const flowingWithinUs = 10e6;
/** A value that is older than what is stored by more than this, in microseconds: the server's clock was set back. */
const setBackUs = 60e6;
/** So much the times of one variable may be out of order, as those of two servers of a set are. */
const disorderUs = 2e6;
const setBack = "the server's clock was set back";
const interruption: ReadonlySet<Cause> = new Set<Cause>(["interruption"]);
const overflowing: ReadonlySet<Cause> = new Set<Cause>(["overflow"]);
const nothing: readonly TagGap[] = [];

interface Past {
  readonly key: string;
  /** In the memory, once a value of it is on disk. */
  place: number | undefined;
  /** Its first value has told where the gap since the last connection ends. */
  begun: boolean;
  /** It was monitored all the time since the last connection. */
  kept: boolean;
  /** Of these the server kept one value meanwhile, and does not tell of the others. */
  brief: boolean;
  /** No recovery was in progress when it began, so no result has to be reported. */
  clean: boolean;
}

export class Backfill {
  readonly #options: BackfillOptions;
  readonly #filler: GapFiller;
  readonly #gaps = new Gaps<Item>();
  readonly #connected: EpochMicros;
  readonly #pasts = new WeakMap<Item, Past>();
  /** By node: how the first of its tags is sampled. Others that are sampled otherwise are ahead of it, or behind. */
  readonly #samplings = new Map<string, string>();
  /** Of nodes of which nothing is on disk yet: the time of the first value that came. */
  readonly #firsts = new Map<string, EpochMicros>();
  /** How far the server's clock was seen to be ahead of ours, in microseconds. */
  #ahead = 0;
  #failed: HistoryGap<Item>[] = [];
  readonly #handOver = new HandOver();

  constructor(options: BackfillOptions) {
    this.#options = options;
    this.#connected = options.runtime.clock.now();
    this.#filler = new GapFiller(options, ({ key }) => {
      if (this.#gaps.close(key)) options.memory.closed(key);
    });
  }

  /**
   * Before the first value. Of `fresh` nodes something may be missing since the last connection; of `brief` ones, too, of
   * which the server has kept one value alone; of `kept` ones only where gaps were not filled by an earlier connection: they
   * are given.
   */
  begin(items: readonly Item[], state: "fresh" | "brief" | "kept"): TagGap[] {
    const { memory, runtime } = this.#options;
    const now = runtime.clock.now();
    return items.flatMap((item) => {
      const past = this.#past(item);
      const { key } = past;
      const [last, since] = [memory.storedUpTo(key), memory.openSince(key)];
      past.brief = state === "brief";
      past.kept = state === "kept";
      past.clean = since === undefined;
      if (!past.kept) {
        if (last !== undefined) memory.opened(key, last, interruption);
        return [];
      }
      // What opens from now on, before its first value, is no gap of an earlier connection.
      past.begun = since === undefined || since < now;
      if (since === undefined || since >= now) return [];
      return this.#open({ item, key, from: since, to: now, causes: memory.causesOf(key), valueAtEnd: false });
    });
  }

  /** A value has come by the subscription. Gives the gap before it, once for each cause. */
  arrived(item: Item, time: EpochMicros, { overflow: said, stream, at }: Arrival): readonly TagGap[] {
    const { memory, runtime } = this.#options;
    const past = this.#past(item);
    const { key } = past;
    this.#ahead = Math.max(this.#ahead, time - (at ?? runtime.clock.now()));
    const known = this.#knownUpTo(past);
    // What was measured until values flow again may have waited for this connection at the server.
    const hasWaited = time - this.#ahead < this.#connected + flowingWithinUs;
    const overflow = said || (past.brief && hasWaited && (known ?? time) < this.#connected);
    if (known === undefined) this.#firsts.set(key, time);
    const first = stream !== "former" && !past.begun;
    if (!first && !overflow && known !== undefined && known - time <= setBackUs) return nothing;
    if (first) past.begun = true;
    const since = first ? (memory.openSince(key) ?? (past.kept ? undefined : memory.storedUpTo(key))) : undefined;
    const causes = since === undefined ? overflowing : new Set([...memory.causesOf(key), ...interruption]);
    if (stream !== "former" && known !== undefined && known - time > setBackUs) {
      // Else all would seem to be stored until the clock has caught up, and no gap would be noticed.
      memory.setBack(key, time);
      return since === undefined && !overflow ? [] : tagGaps({ item, from: time, to: known, causes }, "lost", setBack);
    }
    const last = since ?? (overflow ? known : undefined);
    if (last === undefined) return [];
    if (time > last) return this.#open({ item, key, from: last, to: time, causes, valueAtEnd: true });
    if (last - time > disorderUs && stream !== "former") {
      // The times of what is missing cannot be known: nothing to ask the history for.
      if (since !== undefined) memory.closed(key);
      return tagGaps({ item, from: time, to: last, causes }, "lost", setBack);
    }
    if (since === undefined || overflow) return [];
    // It has not changed. Whoever was told that it is looked for is told that nothing is missing.
    const told = memory.openSince(key) !== undefined && !past.clean;
    memory.closed(key);
    const to = epochMicros(Math.max(since, runtime.clock.now() + this.#ahead));
    return told ? tagGaps({ item, from: since, to, causes }, "filled", "") : [];
  }

  /** A value without a usable time was received, so the values missed before it are unknown. */
  untimed(item: Item, now: EpochMicros, { overflow, stream }: Arrival): readonly TagGap[] {
    const past = this.#past(item);
    const first = stream !== "former" && !past.kept && !past.begun;
    if (first) past.begun = true;
    else if (!overflow) return [];
    const causes = first ? interruption : overflowing;
    return tagGaps({ item, from: now, to: now, causes }, "lost", "the server gives no times");
  }

  /** The server has lost messages: something may be missing of each of these. */
  missed(items: readonly Item[]): TagGap[] {
    const to = epochMicros(this.#options.runtime.clock.now() + this.#ahead);
    return items.flatMap((item) => {
      const past = this.#past(item);
      const { key } = past;
      const from = this.#knownUpTo(past);
      if (from === undefined || from >= to) return [];
      return this.#open({ item, key, from, to, causes: overflowing, valueAtEnd: false });
    });
  }

  /** Nothing is missing of a node before this. */
  #knownUpTo({ key, place }: Past): EpochMicros | undefined {
    const { memory } = this.#options;
    return place === undefined ? (memory.storedUpTo(key) ?? this.#firsts.get(key)) : memory.storedAt(place);
  }

  /** A value that has come is on disk. */
  stored(item: Item, time: EpochMicros): void {
    const past = this.#past(item);
    past.place = this.#options.memory.stored(past.key, time, past.place);
  }

  /**
   * Fills gaps and writes down how far the values are stored, until `signal` aborts. What cannot be filled for now is tried again,
   * also by a later connection; it never ends the source.
   */
  async run(signal: AbortSignal): Promise<never> {
    const { memory, runtime } = this.#options;
    const rest = (ms: number) => runtime.clock.sleep(ms, signal);
    const filling = async () => {
      for (;;) {
        await this.#handOver.take(() => this.#gaps.size > 0 || undefined, signal);
        await rest(settlingMs);
        this.#failed.push(...(await this.#filler.fill(this.#gaps.take(), signal)));
      }
    };
    const saving = async () => {
      for (;;) {
        for (let ms = 0; ms < saveEveryMs && !memory.outdated; ms += saveClosedMs) await rest(saveClosedMs);
        await this.save();
        // At a disk that fails, too, no more often than that.
        await rest(saveClosedMs);
      }
    };
    const retrying = async () => {
      for (;;) {
        await rest(retryMs);
        for (const gap of this.#failed.splice(0)) this.#gaps.giveBack(gap);
        if (this.#gaps.size > 0) this.#handOver.notify();
      }
    };
    return await Promise.race([filling(), saving(), retrying()]);
  }

  /**
   * Calls `settle` once every gap so far is written down, and where the next one of each node would begin: at once where
   * it is, else when the disk has it. Not when the disk fails: what tells of it is not acknowledged then, and comes again.
   */
  remembered(settle: () => void): void {
    if (!this.#options.memory.forgetful) settle();
    else void this.save().then((saved) => saved && settle());
  }

  /** Writes down how far the values are stored, and what is missing. False, and told, when the disk fails. */
  async save(): Promise<boolean> {
    const { memory, runtime } = this.#options;
    try {
      await memory.save();
      return true;
    } catch (error) {
      runtime.log.warn({ err: error }, "cannot persist the positions of stored values");
      return false;
    }
  }

  #open(gap: HistoryGap<Item>): TagGap[] {
    this.#options.memory.opened(gap.key, gap.from, gap.causes);
    this.#gaps.add(gap);
    this.#handOver.notify();
    return tagGaps(
      gap,
      "open",
      gap.causes.has("overflow") ? "the server's queue was full" : "the source was not connected",
    );
  }

  #past(item: Item): Past {
    const known = this.#pasts.get(item);
    if (known) return known;
    const element = item.index === undefined ? "" : `[${item.index.join()}]`;
    const field = item.field === undefined ? "" : `.${JSON.stringify(item.field)}`;
    const node = portableNodeId(item.nodeId.toString(), this.#options.namespaces) + element + field;
    const { every, deadband, trigger } = item;
    const sampling = JSON.stringify([every, deadband?.kind, deadband?.value, trigger]);
    if (!this.#samplings.has(node)) this.#samplings.set(node, sampling);
    const key = sampling === this.#samplings.get(node) ? node : `${node} ${sampling}`;
    const past: Past = { key, place: undefined, begun: false, kept: false, brief: false, clean: false };
    this.#pasts.set(item, past);
    return past;
  }
}
