// Counts every appended point as settled, refused, lost for a reason, or still stored.

import type { BufferState } from "./buffer-state.ts";
import { LossCounters, type LossReason, type LostRange } from "./loss-counters.ts";
import { type RemovedRange, RemovedRanges } from "./removed-ranges.ts";

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
