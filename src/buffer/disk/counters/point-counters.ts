// Counts every appended point as settled, refused, lost for a reason, or still stored.

import type { Loss } from "../../../core/buffer.ts";
import { epochMicros } from "../../../core/point.ts";
import { type RemovedRange, RemovedRanges } from "./ranges.ts";
import type { BufferState } from "./state-file.ts";

export class PointCounters {
  /** Sequence number of the next point. */
  next = 0;
  /** Sequence number at which the counters begin. */
  origin = 0;
  settled = 0;
  refused = 0;
  duplicates = 0;
  collided = 0;
  opens = 1;
  losses = new LossCounters();
  removed = new RemovedRanges();
  /** True if the state on disk is out of date: points were appended, settled or lost since, or segments removed. */
  changed = true;

  static from(state: BufferState | undefined): PointCounters {
    const counters = new PointCounters();
    if (!state) return counters;
    const { durable: next, origin, settled, refused, duplicates, collided, opens } = state;
    Object.assign(counters, { next, origin, settled, refused, duplicates, collided, opens: opens + 1 });
    counters.losses = new LossCounters(state.losses);
    counters.removed = new RemovedRanges(state.removed);
    // The process that had leased these points is gone.
    for (const { reason, ...leased } of state.leased) counters.losses.add(reason as LossReason, leased);
    return counters;
  }

  get appended(): number {
    return this.next - this.origin;
  }

  /** Counts `points` as done; the service refused `refused` of them for good and has the others. */
  settle(points: number, refused: number): void {
    this.changed = true;
    this.refused += Math.min(refused, points);
    this.settled += points - Math.min(refused, points);
  }

  lose(reason: LossReason, loss: LostRange, first: number, end: number): void {
    this.changed = true;
    this.losses.add(reason, loss);
    this.removed.add(first, end, loss.points, reason);
  }

  /** These points were found again, `unsettled` of them to be delivered: they no longer count as lost or settled. */
  restore(first: number, end: number, unsettled: number): void {
    let left = unsettled;
    const found = new Map<RemovedRange, number>();
    const ranges = this.removed.within(first, end);
    for (const range of ranges) {
      const points = Math.min(left, range.lost, this.losses.pointsOf(range.reason));
      this.losses.takeBack(range.reason, points);
      found.set(range, points);
      left -= points;
    }
    this.unsettle(left);
    this.removed.restore(first, end, found);
  }

  /** Counts settled or refused points as unsettled. Returns how many of `points` exceed both counts. */
  unsettle(points: number): number {
    const settled = Math.min(this.settled, points);
    this.settled -= settled;
    const refused = Math.min(this.refused, points - settled);
    this.refused -= refused;
    return points - settled - refused;
  }

  /** Appended points that are neither settled, refused, lost nor among the `unsettled` ones. */
  unexplained(unsettled: number): number {
    return this.appended - this.settled - this.refused - this.losses.points - unsettled;
  }
}

/** Reason names in metrics and `status`. The first four are limits that caused segments to be dropped. */
export const lossReasons = [
  "maxSize",
  "maxAge",
  "reserveFreeDisk",
  "diskFull",
  /** The bytes read differ from the bytes written. */
  "damaged",
  "missing",
  /** The disk reported the points as synced but did not have them after a restart. */
  "diskLied",
] as const;
export type LossReason = (typeof lossReasons)[number];

const intervalsKept = 32;

/** A run of lost points. */
export interface LostRange {
  readonly points: number;
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Sequence numbers, half open. Undefined: unknown. */
  readonly first?: number;
  readonly end?: number;
}

/** Points that will never be delivered, by reason. */
export class LossCounters {
  readonly #losses = new Map<string, Loss>();
  #nextNumber = 0;
  /** Position after the interval added last: a loss that starts there extends this interval. */
  #last: { readonly reason: string; readonly end: number } | undefined;

  constructor(losses: readonly Loss[] = []) {
    for (const loss of losses) {
      this.#losses.set(loss.reason, loss);
      for (const { number } of loss.intervals) this.#nextNumber = Math.max(this.#nextNumber, number + 1);
    }
  }

  get points(): number {
    let points = 0;
    for (const loss of this.#losses.values()) points += loss.points;
    return points;
  }

  add(reason: LossReason, { points, from, to, first, end }: LostRange): void {
    if (points <= 0) return;
    const before = this.#losses.get(reason);
    const intervals = [...(before?.intervals ?? [])];
    const grows = first !== undefined && this.#last?.reason === reason && this.#last.end === first;
    const last = grows ? intervals.pop() : undefined;
    const added = { number: last?.number ?? this.#nextNumber++, ...joinedSpan(last, { points, from, to }) };
    intervals.push(added);
    this.#losses.set(reason, {
      reason,
      ...joinedSpan(before, { points, from, to }),
      found: before?.found,
      intervals: intervals.slice(-intervalsKept),
    });
    this.#last = end === undefined ? undefined : { reason, end };
  }

  /** Points lost for this reason were found again. Reduces the newest intervals first. */
  takeBack(reason: string, points: number): void {
    const before = this.#losses.get(reason);
    if (!before || points <= 0) return;
    let left = points;
    const intervals = before.intervals.toReversed().map((interval) => {
      const found = Math.min(left, interval.points);
      left -= found;
      return { ...interval, points: interval.points - found };
    });
    const rest = before.points - points;
    this.#losses.set(reason, {
      reason,
      points: rest,
      found: (before.found ?? 0) + points,
      from: rest > 0 ? before.from : undefined,
      to: rest > 0 ? before.to : undefined,
      intervals: intervals.toReversed(),
    });
    this.#last = undefined;
  }

  pointsOf(reason: string): number {
    return this.#losses.get(reason)?.points ?? 0;
  }

  list(): Loss[] {
    return [...this.#losses.values()];
  }
}

export type LostSpan = Pick<LostRange, "points" | "from" | "to">;

/** Adds the counts and spans both time ranges. */
export function joinedSpan(a: LostSpan | undefined, b: LostSpan) {
  return {
    points: (a?.points ?? 0) + b.points,
    from: micros(Math.min(a?.from ?? Number.POSITIVE_INFINITY, b.from ?? Number.POSITIVE_INFINITY)),
    to: micros(Math.max(a?.to ?? Number.NEGATIVE_INFINITY, b.to ?? Number.NEGATIVE_INFINITY)),
  };
}

const micros = (value: number) => (Number.isFinite(value) ? epochMicros(value) : undefined);
