// Decides the outcome of one ended gap: values retained, recovered from the device's history, or lost.
import type { TagGap } from "../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { type Gap, type GapEvent, named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { atMost, type Interval, joined, without } from "./intervals.ts";

/** Longest time between a last value and the detection of the loss. A tag with an older last value rarely changes. */
const edgeUs = 60e6;

/** A wall clock that jumps forward by more than this was set. */
const clockStepUs = 2e6;

/** Most lost intervals of one tag. Beyond this, the oldest are merged. */
const mostLost = 200;

interface Loss {
  readonly intervals: readonly Interval[];
  readonly reason: string;
}

const asking = "the device's history is asked";
const unreported = "recovery was in progress when the agent or the source stopped, and nothing was reported since";

/** The recovery of one row. Reports of close gaps go to several rows, so intervals are tracked, not only tags. */
export class GapResolution {
  readonly #record: GapRecord;
  readonly #id: number;
  /** Begin of the row before any report of a tag. */
  readonly #began: number;
  /** Earliest reported begins: `#near` of tags with a value within `edgeUs` before the row, `#far` of the others. */
  #near = Number.POSITIVE_INFINITY;
  #far = Number.POSITIVE_INFINITY;
  /** Number of tags if the row covers the whole source. Undefined: the row covers the reported tags only. */
  readonly #tags: number | undefined;
  /** The reported tags, if the row covers only those. */
  readonly #reported: Set<string>;
  /** Intervals being recovered, by Input ID. */
  readonly #open = new Map<string, readonly Interval[]>();
  readonly #lost = new Map<string, Loss>();
  #found = false;
  /** Whether there were reports since the last `settle`; `#over` is its last argument. */
  #news = true;
  #over = false;
  /** Tags that an earlier run was recovering, without a report since. */
  readonly #asked: Set<string>;
  /** Tags beyond the named ones: how many an earlier run was recovering, and how many it found lost. */
  #askedBefore: number;
  #lostBefore: number;
  /** Tags reported in this run. Only set if an earlier run could not name all its tags. */
  readonly #received: Set<string> | undefined;

  constructor(record: GapRecord, id: number) {
    this.#record = record;
    this.#id = id;
    const gap = record.get(id);
    this.#began = gap?.from ?? 0;
    this.#tags = gap && gap.tags > 0 && gap.inputs.length === 0 ? gap.tags : undefined;
    this.#reported = new Set(gap?.inputs);
    const reason = (gap?.state !== "filling" && gap?.outcome) || "found out earlier";
    for (const input of gap?.unfilled?.inputs ?? []) this.#lost.set(input, { intervals: [this.#all()], reason });
    this.#asked = new Set(gap?.asked?.inputs);
    this.#askedBefore = Math.max(0, (gap?.asked?.tags ?? 0) - this.#asked.size);
    this.#lostBefore = Math.max(0, (gap?.unfilled?.tags ?? 0) - this.#lost.size);
    this.#received = this.#askedBefore + this.#lostBefore > 0 ? new Set() : undefined;
  }

  get row(): Gap | undefined {
    return this.#record.get(this.#id);
  }

  /** Number of entries held, by tag. */
  get size(): number {
    return this.#reported.size + this.#open.size + this.#lost.size;
  }

  /**
   * Whether a gap of a tag may belong to this row if no other row covers its time. The tag's clock may be slightly
   * ahead of the agent's, or up to `behindUs` behind it.
   */
  isNear(gap: TagGap, behindUs: number): boolean {
    const { row } = this;
    // A row for several interruptions is final, and its times are not those of one interruption.
    if (!row || row.to === undefined || row.times > 1) return false;
    if ((gap.cause === "overflow") !== (row.cause === "overflow")) return false;
    if (this.#tags === undefined) return this.overlaps(gap, 0);
    return gap.from <= row.to + edgeUs && gap.to + behindUs >= row.from;
  }

  /** Whether the missing interval overlaps this row, allowing for a clock that is behind. */
  overlaps({ from, to }: Pick<TagGap, "from" | "to">, behindUs: number): boolean {
    const { row } = this;
    if (row?.to === undefined) return false;
    const behind = this.#tags === undefined ? 0 : behindUs;
    return from === to ? from + behind >= row.from && to <= row.to : from < row.to && to + behind > row.from;
  }

  /** Whether values of this tag are being recovered in that time. */
  awaits(input: string, { from, to, cause }: Pick<TagGap, "from" | "to" | "cause">): boolean {
    const { row } = this;
    if (!row || (cause === "overflow") !== (row.cause === "overflow")) return false;
    return (this.#open.get(input) ?? []).some(([begin, end]) =>
      from === to || begin === end ? begin <= to && end >= from : begin < to && end > from,
    );
  }

  /** `floor`: end of the previous row. Values missing before it belong to that row. */
  take(input: string, { state, reason, from, to }: TagGap, floor: number): void {
    const { row } = this;
    if (!row) return;
    this.#news = true;
    this.#hear(input, state);
    const interval: Interval = [from, to];
    const open = this.#open.get(input) ?? [];
    const { intervals: lost = [], reason: before = reason } = this.#lost.get(input) ?? {};
    keep(this.#open, input, state === "open" ? joined(open, interval) : without(open, interval), (left) => left);
    if (state === "lost") this.#lost.set(input, { intervals: atMost(mostLost, joined(lost, interval)), reason });
    if (state === "filled") {
      this.#found = true;
      keep(this.#lost, input, without(lost, interval), (left) => ({ intervals: left, reason: before }));
    }
    if (this.#tags === undefined) this.#reported.add(input);
    const earliest = this.#began - edgeUs;
    const begin = Math.max(from, earliest, Math.min(floor, this.#began));
    if (from < earliest) this.#far = Math.min(this.#far, begin);
    else this.#near = Math.min(this.#near, begin);
    const known = Math.min(this.#began, this.#near === Number.POSITIVE_INFINITY ? this.#far : this.#near);
    const end = this.#tags === undefined ? epochMicros(Math.max(to, row.to ?? to)) : row.to;
    this.#record.change(this.#id, { from: epochMicros(known), to: end });
  }

  /** Updates what an earlier run knew about this tag. */
  #hear(input: string, state: TagGap["state"]): void {
    // The tag was missing from the reports only for a while, and its outcome is reported now.
    if (this.#lost.get(input)?.reason === unreported) this.#lost.delete(input);
    if (this.#asked.delete(input) || this.#lost.has(input) || !this.#received || this.#received.has(input)) return;
    this.#received.add(input);
    if (this.#askedBefore > 0) this.#askedBefore--;
    else if (this.#lostBefore > 0 && state === "lost") this.#lostBefore--;
  }

  /** Writes the names of the reported tags to the row, if the row covers only those. */
  flush(): void {
    if (this.#tags === undefined && this.row?.tags !== this.#reported.size)
      this.#record.change(this.#id, named(this.#reported.size, this.#reported));
  }

  /** Writes the state to the row for the next run. `over`: reports follow only for intervals still being recovered. */
  settle(over: boolean): void {
    if (!this.#news && over === this.#over) return;
    this.#news = false;
    this.#over = over;
    if ((!over && this.row?.state === "filling") || this.#open.size > 0) {
      const asked = this.#open.size + this.#asked.size + this.#askedBefore;
      this.#become(
        "asked",
        asking,
        this.#unfilled,
        some(
          asked,
          [this.#open.keys(), this.#asked.keys()].values().flatMap((names) => names),
        ),
      );
      return;
    }
    for (const input of this.#asked) this.#lost.set(input, { intervals: [this.#all()], reason: unreported });
    this.#lostBefore += this.#askedBefore;
    this.#askedBefore = 0;
    this.#asked.clear();
    this.#end();
  }

  get #unfilled(): Gap["unfilled"] {
    return some(this.#lost.size + this.#lostBefore, this.#lost.keys());
  }

  #end(): void {
    const lost = this.#lost.size + this.#lostBefore;
    if (lost === 0)
      return this.#become("found", this.#found ? "filled from the device's history" : "no value was missing");
    const reasons = [...new Set(this.#lost.values().map(({ reason }) => reason))].slice(0, 3).join("; ");
    const partly = this.#found || lost < (this.#tags ?? this.#reported.size);
    this.#become(partly ? "partlyFound" : "notFound", reasons, this.#unfilled);
  }

  /** Ends the recovery: every gap that was looked for has been reported, or no value was missing. */
  conclude(): void {
    this.#open.clear();
    this.#asked.clear();
    this.#askedBefore = 0;
    this.#news = true;
    this.settle(true);
  }

  abandon(reason: string): void {
    this.#become("abandoned", reason);
  }

  retained(by: string): void {
    this.#become("retained", by);
  }

  connected(to: EpochMicros): void {
    const { row } = this;
    this.#news = true;
    if (row) this.#record.advance(this.#id, "connected", { to: epochMicros(Math.max(row.from, to)) });
  }

  /** Ends an open row without a connection. */
  ended(to: EpochMicros): void {
    const { row } = this;
    if (row?.to === undefined && row)
      this.#record.advance(this.#id, "ends", { to: epochMicros(Math.max(row.from, to)) });
  }

  /** Corrects the end of the row after the clock turned out to have been behind. */
  notBefore(end: number): void {
    const { row } = this;
    if (row?.to !== undefined && end - row.to > clockStepUs) this.#record.change(this.#id, { to: epochMicros(end) });
  }

  #all(): Interval {
    const { from = epochMicros(0), to = from } = this.row ?? {};
    return [from, to];
  }

  #become(event: GapEvent, outcome: string, unfilled?: Gap["unfilled"], asked?: Gap["asked"]): void {
    this.#record.advance(this.#id, event, { outcome, unfilled, asked });
  }
}

/** Undefined: no tags. */
function some(tags: number, inputs: Iterable<string>): Gap["asked"] {
  return tags === 0 ? undefined : named(tags, inputs);
}

/** Stores the remaining intervals, or deletes the entry if none remain. */
function keep<T>(
  known: Map<string, T>,
  input: string,
  intervals: readonly Interval[],
  of: (left: readonly Interval[]) => T,
): void {
  if (intervals.length === 0) known.delete(input);
  else known.set(input, of(intervals));
}
