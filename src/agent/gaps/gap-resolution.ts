// Decides the outcome of one ended gap: values retained, recovered from the device's history, or lost.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { TagGap } from "../../core/source.ts";
import { type Gap, type GapEvent, named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { atMost, type Interval, joined, keepLeft, without } from "./intervals.ts";

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
export type GapResolution = ReturnType<typeof gapResolution>;

export function gapResolution(record: GapRecord, id: number) {
  /** Earliest reported begins: `near` of tags with a value within `edgeUs` before the row, `far` of the others. */
  let near = Number.POSITIVE_INFINITY;
  let far = Number.POSITIVE_INFINITY;
  /** Latest reported end, or arrival of that report if the device's clock is ahead. */
  let latest = 0;
  /** Intervals being recovered, by Input ID. */
  const recovering = new Map<string, readonly Interval[]>();
  const lost = new Map<string, Loss>();
  let found = false;
  /** Whether there were reports since the last `settle`; `wasOver` is its last argument. */
  let news = true;
  let wasOver = false;
  const gap = record.get(id);
  /** Begin of the row before any report of a tag. */
  const began = gap?.from ?? 0;
  /** Number of tags if the row covers the whole source. Undefined: the row covers the reported tags only. */
  const tags = gap && gap.tags > 0 && gap.inputs.length === 0 ? gap.tags : undefined;
  /** The reported tags, if the row covers only those. */
  const reported = new Set(gap?.inputs);
  const reason = (gap?.state !== "filling" && gap?.outcome) || "found out earlier";
  for (const input of gap?.unfilled?.inputs ?? []) lost.set(input, { intervals: [all()], reason });
  /** Tags that an earlier run was recovering, without a report since. */
  const asked = new Set(gap?.asked?.inputs);
  /** Tags beyond the named ones: how many an earlier run was recovering, and how many it found lost. */
  let askedBefore: number = Math.max(0, (gap?.asked?.tags ?? 0) - asked.size);
  let lostBefore: number = Math.max(0, (gap?.unfilled?.tags ?? 0) - lost.size);
  /** Tags reported in this run. Only set if an earlier run could not name all its tags. */
  const received = askedBefore + lostBefore > 0 ? new Set() : undefined;

  function current(): Gap | undefined {
    return record.get(id);
  }

  /** Updates what an earlier run knew about this tag. */
  function hear(input: string, state: TagGap["state"]): void {
    // The tag was missing from the reports only for a while, and its outcome is reported now.
    if (lost.get(input)?.reason === unreported) lost.delete(input);
    if (asked.delete(input) || lost.has(input) || !received || received.has(input)) return;
    received.add(input);
    if (askedBefore > 0) askedBefore--;
    else if (lostBefore > 0 && state === "lost") lostBefore--;
  }

  function unfilled(): Gap["unfilled"] {
    return some(lost.size + lostBefore, lost.keys());
  }

  function end(): void {
    const missing = lost.size + lostBefore;
    if (missing === 0) return become("found", found ? "filled from the device's history" : "no value was missing");
    const reasons = [...new Set(lost.values().map(({ reason }) => reason))].slice(0, 3).join("; ");
    const partly = found || missing < (tags ?? reported.size);
    become(partly ? "partlyFound" : "notFound", reasons, unfilled());
  }

  function all(): Interval {
    const { from = epochMicros(0), to = from } = current() ?? {};
    return [from, to];
  }

  function become(event: GapEvent, outcome: string, unfilled?: Gap["unfilled"], asked?: Gap["asked"]): void {
    record.advance(id, event, { outcome, unfilled, asked });
  }

  /** Whether the missing interval overlaps this row, allowing for a clock that is behind. */
  function overlaps({ from, to }: Pick<TagGap, "from" | "to">, behindUs: number): boolean {
    const row = current();
    if (row?.to === undefined) return false;
    const behind = tags === undefined ? 0 : behindUs;
    return from === to ? from + behind >= row.from && to <= row.to : from < row.to && to + behind > row.from;
  }

  /** Writes the state to the row for the next run. `over`: reports follow only for intervals still being recovered. */
  function settle(over: boolean): void {
    if (!news && over === wasOver) return;
    news = false;
    wasOver = over;
    if ((!over && current()?.state === "filling") || recovering.size > 0) {
      const names = [recovering.keys(), asked.keys()].values().flatMap((each) => each);
      const inRecovery = some(recovering.size + asked.size + askedBefore, names);
      // Before the driver has reported anything, the row does not change.
      if (inRecovery || lost.size > 0) become("asked", asking, unfilled(), inRecovery);
      return;
    }
    for (const input of asked) lost.set(input, { intervals: [all()], reason: unreported });
    lostBefore += askedBefore;
    askedBefore = 0;
    asked.clear();
    end();
  }

  return {
    overlaps,
    settle,
    get row(): Gap | undefined {
      return current();
    },
    /** Number of entries held, by tag. */
    get size(): number {
      return reported.size + recovering.size + lost.size;
    },
    /**
     * Whether a gap of a tag may belong to this row if no other row covers its time. The tag's clock may be slightly
     * ahead of the agent's, or up to `behindUs` behind it.
     */
    isNear(gap: TagGap, behindUs: number): boolean {
      const row = current();
      // A row for several interruptions is final, and its times are not those of one interruption.
      if (!row || row.to === undefined || row.times > 1) return false;
      if ((gap.cause === "overflow") !== (row.cause === "overflow")) return false;
      if (tags === undefined) return overlaps(gap, 0);
      return gap.from <= row.to + edgeUs && gap.to + behindUs >= row.from;
    },
    /** Whether it is the row of an outage, or of another time of the whole source. */
    isOfSource: tags !== undefined,
    /** Whether it has just ended, and the report is about another time than now, as of a device whose clock is wrong. */
    mayConcern({ cause, to }: TagGap, now: EpochMicros): boolean {
      const row = current();
      if (row?.to === undefined || tags === undefined || row.times > 1 || cause === "overflow") return false;
      return now - row.to <= edgeUs && Math.abs(now - to) > edgeUs;
    },
    /** Whether values of this tag are being recovered in that time. */
    awaits(input: string, { from, to, cause }: Pick<TagGap, "from" | "to" | "cause">): boolean {
      const row = current();
      if (!row || (cause === "overflow") !== (row.cause === "overflow")) return false;
      return (recovering.get(input) ?? []).some(([begin, end]) =>
        from === to || begin === end ? begin <= to && end >= from : begin < to && end > from,
      );
    },
    /** Whether all values of the report are being recovered, perhaps since an earlier run. */
    isKnown(input: string, report: TagGap): boolean {
      if (asked.has(input) && overlaps(report, 0)) return true;
      return (recovering.get(input) ?? []).some(([begin, end]) => begin <= report.from && end >= report.to);
    },
    /** `floor`: end of the previous row. Values missing before it belong to that row. `now`: time of the report. */
    take(input: string, { state, reason, from, to }: TagGap, floor: number, now: EpochMicros): void {
      const row = current();
      if (!row) return;
      news = true;
      hear(input, state);
      const interval: Interval = [from, to];
      const open = recovering.get(input) ?? [];
      // A tag that is polled gets its first value after the connection, but not long after it.
      const isFirst = open.length === 0 && state !== "filled" && now - (row.to ?? now) <= edgeUs;
      if (isFirst) latest = Math.max(latest, Math.min(to, now));
      const { intervals: missing = [], reason: before = reason } = lost.get(input) ?? {};
      keepLeft(recovering, input, state === "open" ? joined(open, interval) : without(open, interval), (left) => left);
      if (state === "lost") lost.set(input, { intervals: atMost(mostLost, joined(missing, interval)), reason });
      if (state === "filled") {
        found = true;
        keepLeft(lost, input, without(missing, interval), (left) => ({ intervals: left, reason: before }));
      }
      if (tags === undefined) reported.add(input);
      const earliest = began - edgeUs;
      const begin = Math.max(from, earliest, Math.min(floor, began));
      if (from >= earliest) near = Math.min(near, begin);
      else if (to >= earliest) far = Math.min(far, begin);
      const known = Math.min(began, near === Number.POSITIVE_INFINITY ? far : near);
      const until = tags === undefined ? to : state === "lost" ? latest : 0;
      const end = row.to === undefined ? until : Math.max(until, row.to);
      record.change(id, { from: epochMicros(known), to: epochMicros(end) });
    },
    /** Writes the names of the reported tags to the row, if the row covers only those. */
    flush(): void {
      if (tags === undefined && current()?.tags !== reported.size) record.change(id, named(reported.size, reported));
    },
    /** Ends the recovery: every gap that was looked for has been reported, or no value was missing. */
    conclude(): void {
      recovering.clear();
      asked.clear();
      askedBefore = 0;
      news = true;
      settle(true);
    },
    abandon(reason: string): void {
      become("abandoned", reason);
    },
    retained(by: string): void {
      become("retained", by);
    },
    connected(to: EpochMicros): void {
      const row = current();
      news = true;
      if (row) record.advance(id, "connected", { to: epochMicros(Math.max(row.from, to)) });
    },
    /** Ends an open row without a connection. */
    ended(to: EpochMicros): void {
      const row = current();
      if (row?.to === undefined && row) record.advance(id, "ends", { to: epochMicros(Math.max(row.from, to)) });
    },
    /** Corrects the end of the row after the clock turned out to have been behind. */
    notBefore(end: number): void {
      const row = current();
      if (row?.to !== undefined && end - row.to > clockStepUs) record.change(id, { to: epochMicros(end) });
    },
  };
}

/** Undefined: no tags. */
function some(tags: number, inputs: Iterable<string>): Gap["asked"] {
  return tags === 0 ? undefined : named(tags, inputs);
}

/** Most gaps of a source that are followed at a time. */
const mostGaps = 100;
/** Most tag entries of all followed gaps together, not counting the newest gap. */
const mostNames = 100_000;

export function gapResolutions(record: GapRecord, source: string) {
  /** Oldest first. */
  const gaps: GapResolution[] = [];

  /** Adds a row for a gap that the agent did not notice: the server discarded values, or the record began later. */
  function adopt({ cause, reason, from, to }: TagGap): GapResolution {
    const row = { source, cause: cause === "overflow" ? cause : "disconnected", reason, from, to } as const;
    const gap = gapResolution(record, record.add("reported", { ...row, tags: 0, inputs: [] }));
    gaps.push(gap);
    return gap;
  }

  return {
    add(gap: GapResolution): void {
      gaps.push(gap);
    },

    /** Handles the report of a tag whose clock may be up to `behindUs` behind the agent's. */
    take(input: string, report: TagGap, behindUs: number, now: EpochMicros): void {
      // A row that awaits this tag gets the report, however far the clocks are apart now.
      const near = gaps.filter((gap) => gap.isNear(report, behindUs) || gap.awaits(input, report));
      // A clock that is ahead puts the report behind all rows. Then it is unknown which of them it belongs to.
      const within = near.some((gap) => gap.overlaps(report, behindUs))
        ? near.filter((gap) => gap.overlaps(report, behindUs) || gap.awaits(input, report))
        : near;
      const fitting = within.length > 0 ? within : [adopt(report)];
      // A row at the time of a wrong clock does not tell that values of the outage are missing.
      const isRightRow = (gap: GapResolution) => gap.isOfSource && gap.isNear(report, behindUs);
      const isRight = fitting.some((gap) => gap.isKnown(input, report) || isRightRow(gap));
      const outages = isRight ? [] : gaps.filter((gap) => gap.mayConcern(report, now));
      const concerned = new Set([...fitting, ...outages.slice(-1)]);
      const ends = Array.from(concerned, ({ row }) => row?.to ?? 0).toSorted((a, b) => a - b);
      for (const gap of concerned) {
        const { from = 0 } = gap.row ?? {};
        gap.take(input, report, ends.findLast((to) => to <= from) ?? 0, now);
      }
    },

    /** Writes the names of the reported tags to the rows. */
    flush(): void {
      for (const gap of gaps) gap.flush();
    },

    settle(over: boolean): void {
      for (const gap of gaps) gap.settle(over);
    },

    /** Ends all recoveries: concluded, or abandoned if there is a reason `unasked`. */
    end(unasked: string | undefined): void {
      for (const gap of gaps.splice(0))
        if (unasked === undefined) gap.conclude();
        else gap.abandon(unasked);
    },

    /** Abandons the oldest gaps beyond the limits. What they have reported stays in the record. */
    forget(): void {
      let names = 0;
      const kept = gaps.findLastIndex(({ size }) => (names += size) > mostNames);
      const first = Math.max(0, gaps.length - mostGaps, Math.min(kept + 1, gaps.length - 1));
      for (const gap of gaps.splice(0, first)) gap.abandon("too many gaps are open to follow each of them");
    },
  };
}
