// The rows of the gap record in memory. Their number is bounded, and similar rows close together are merged.
import { isDeepStrictEqual } from "node:util";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { defined } from "../../lib/values/defined.ts";
import { type Gap, type GapEvent, type GapSummary, gapLife, stateAfter } from "./gap.ts";

const mostRows = 5_000;
const oldestUs = 90 * 86_400e6;
/** Most Input IDs in all rows together. Beyond it, the oldest rows keep only `keptNames`. */
const mostNames = 100_000;
const keptNames = 20;
/** Most rows of the same kind within an hour. Further ones are merged into the row before them. */
const apartPerHour = 10;
/** Most interruptions that a row lists. */
const mostIntervals = 200;
const hourUs = 3_600e6;
const dayUs = 86_400e6;
/** A reload restarts a source within this time, unless the changed configuration is the cause of an outage. */
const reloadMs = 60_000;

export type NewGap = Omit<Gap, "id" | "state" | "times" | "missingMs">;
export type FirstEvent = {
  [E in GapEvent]: (typeof gapLife)[E] extends { readonly none: unknown } ? E : never;
}[GapEvent];

export function gapRows(rows: Map<number, Gap>) {
  const changed = new Set<number>();
  let names = 0;
  let revision = 0;
  let nextId: number = Math.max(0, ...rows.keys()) + 1;
  for (const gap of rows.values()) names += namesOf(gap);

  function set(gap: Gap): void {
    names += namesOf(gap) - namesOf(rows.get(gap.id));
    rows.set(gap.id, gap);
    changed.add(gap.id);
    revision++;
  }

  function remove(id: number): void {
    names -= namesOf(rows.get(id));
    rows.delete(id);
    changed.add(id);
    revision++;
  }

  function bound(now: EpochMicros): void {
    for (const gap of all()) {
      if (gap.to === undefined) continue;
      if (rows.size > mostRows || gap.to < now - oldestUs) remove(gap.id);
      else if (names > mostNames && namesOf(gap) > 3 * keptNames) set(shortened(gap));
    }
  }

  /** Oldest first. */
  function all(): readonly Gap[] {
    return [...rows.values()];
  }

  return {
    all,
    get: (id: number): Gap | undefined => rows.get(id),
    add(event: FirstEvent, gap: NewGap, now: EpochMicros): Gap {
      const added = { ...gap, id: nextId++, state: gapLife[event].none, times: 1, ...missing(gap) };
      set(added);
      bound(now);
      return added;
    },
    /** Returns the changed row. Undefined: the row does not exist or does not change. */
    change(id: number, changes: Partial<NewGap>, event?: GapEvent): Gap | undefined {
      const before = rows.get(id);
      const state = before && (event ? stateAfter(event, before.state) : before.state);
      if (!state) return undefined;
      const after = { ...before, ...changes, state };
      const keys = [...Object.keys(changes), "state"] as (keyof typeof after)[]; // the keys of `NewGap`
      if (keys.every((key) => isDeepStrictEqual(after[key], before[key]))) return undefined;
      // A row for several interruptions keeps their sum.
      const row = before.times > 1 ? after : { ...after, ...missing(after) };
      set(row);
      return row;
    },
    /** Merges a final row into the last one of its kind if there are many within an hour. */
    join(gap: Gap): void {
      const alike = all().filter(
        (other) => other.id !== gap.id && isFinal(other) && sameKind(other, gap) && (other.to ?? 0) > gap.from - hourUs,
      );
      const last = alike.toSorted((a, b) => a.from - b.from).at(-1);
      if (!last || alike.reduce((sum, { times }) => sum + times, 0) < apartPerHour) return;
      remove(gap.id);
      const intervals = [...intervalsOf(last), ...intervalsOf(gap)];
      while (intervals.length > mostIntervals) {
        const [first, second] = intervals.splice(0, 2);
        if (first && second) intervals.unshift([first[0], epochMicros(Math.max(first[1], second[1]))]);
      }
      set({
        ...last,
        intervals,
        from: epochMicros(Math.min(last.from, gap.from)),
        to: epochMicros(Math.max(last.to ?? 0, gap.to ?? 0)),
        times: last.times + gap.times,
        missingMs: (last.missingMs ?? 0) + (gap.missingMs ?? 0),
        ...((last.points ?? gap.points) !== undefined && { points: (last.points ?? 0) + (gap.points ?? 0) }),
      });
    },
    summary(now: EpochMicros): GapSummary {
      const open = all().filter(({ to }) => to === undefined);
      const openIn = [...new Set(open.flatMap(({ source }) => source ?? []))];
      const day = all().filter(({ to }) => to === undefined || to >= now - dayUs);
      const dayLost = day.filter(({ state }) => state === "lost" || state === "partly");
      const others = dayLost.filter(({ cause, missingMs = 0 }) => cause !== "stopped" || missingMs > reloadMs);
      const dayReloads = dayLost.length - others.length;
      const isCounted = others.every(({ points }) => points !== undefined);
      const lastLost = others.toSorted((a, b) => a.from - b.from).at(-1);
      return {
        open: open.length,
        ...(openIn.length > 0 && { openIn }),
        day: day.length,
        dayLost: dayLost.length,
        ...(dayReloads > 0 && { dayReloads }),
        ...(isCounted && { dayPoints: others.reduce((sum, { points = 0 }) => sum + points, 0) }),
        ...(lastLost && { lastLost: whereAndWhy(lastLost) }),
        revision,
      };
    },
    /** Returns and clears the ids of rows that changed or were deleted since the last call. */
    takeChanged(): readonly number[] {
      const ids = [...changed];
      changed.clear();
      return ids;
    },
    /** Marks rows as changed again after a failed write. */
    giveBack(ids: readonly number[]): void {
      for (const id of ids) changed.add(id);
    },
  };
}

function namesOf(gap: Gap | undefined): number {
  return (gap?.inputs.length ?? 0) + (gap?.unfilled?.inputs.length ?? 0) + (gap?.asked?.inputs.length ?? 0);
}

function shortened(gap: Gap): Gap {
  const few = (named: Gap["asked"]) => named && { ...named, inputs: named.inputs.slice(0, keptNames) };
  const { inputs, unfilled, asked } = gap;
  return { ...gap, inputs: inputs.slice(0, keptNames), unfilled: few(unfilled), asked: few(asked) };
}

export function isFinal({ to, state }: Pick<Gap, "to" | "state">): boolean {
  return to !== undefined && state !== "open" && state !== "filling";
}

/** Whether the row covers a whole source. The source continues such a row when it starts again. */
export function isOutage({ cause }: Pick<Gap, "cause">): boolean {
  return cause === "agentDown" || cause === "disconnected" || cause === "stopped" || cause === "takeover";
}

/** The `most` newest rows that end at `since` or later, newest first, and how many more there are. */
export function newest(gaps: readonly Gap[], since: number, most: number): { gaps: Gap[]; more: number } {
  const found = gaps.filter(({ to }) => to === undefined || to >= since);
  found.sort((a, b) => b.from - a.from || b.id - a.id);
  return { gaps: found.slice(0, most), more: Math.max(0, found.length - most) };
}

function missing({ from, to }: Pick<Gap, "from" | "to">): { missingMs?: number } {
  return to === undefined ? {} : { missingMs: Math.max(0, (to - from) / 1_000) };
}

function intervalsOf({ intervals, from, to }: Gap): readonly [EpochMicros, EpochMicros][] {
  return intervals ?? [[from, to ?? from]];
}

function sameKind(a: Gap, b: Gap): boolean {
  return (
    a.source === b.source &&
    a.cause === b.cause &&
    a.state === b.state &&
    a.tags === b.tags &&
    kindOf(a.reason) === kindOf(b.reason) &&
    isDeepStrictEqual(a.inputs, b.inputs) &&
    isDeepStrictEqual(a.unfilled, b.unfilled)
  );
}

/** The reason with its numbers replaced, so that values, addresses and times do not matter. */
export function kindOf(reason: string): string {
  return reason.replaceAll(/-?\d+(?:\.\d+)?/g, "#");
}

function whereAndWhy({ source, from, to, cause, reason }: Gap): NonNullable<GapSummary["lastLost"]> {
  return { from, cause, reason, ...defined({ source, to }) };
}
