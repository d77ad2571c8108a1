// The books of the buffer: every point that came in is settled, refused, lost for a reason, or still there.

import type { BufferState } from "./buffer-state.ts";
import { LossLedger, type LossReason, type Stretch } from "./loss-ledger.ts";
import { type RemovedRange, RemovedRanges } from "./removed-ranges.ts";

export class Accounts {
  /** Sequence number of the next point. */
  next = 0;
  /** Sequence number at which these accounts begin. */
  origin = 0;
  settled = 0;
  refused = 0;
  duplicates = 0;
  collided = 0;
  opens = 1;
  losses = new LossLedger();
  removed = new RemovedRanges();

  static from(state: BufferState | undefined): Accounts {
    const accounts = new Accounts();
    if (!state) return accounts;
    const { durable: next, origin, settled, refused, duplicates, collided, opens } = state;
    Object.assign(accounts, { next, origin, settled, refused, duplicates, collided, opens: opens + 1 });
    accounts.losses = new LossLedger(state.losses);
    accounts.removed = new RemovedRanges(state.removed);
    // The process that had them in a request is gone.
    for (const { reason, ...leased } of state.leased) accounts.losses.add(reason as LossReason, leased);
    return accounts;
  }

  get appended(): number {
    return this.next - this.origin;
  }

  /** The service has so many points; it refused some of them. */
  settle(points: number, refused: number): void {
    this.refused += Math.min(refused, points);
    this.settled += points - Math.min(refused, points);
  }

  /** Counts lost points whose sequence numbers are known. */
  lose(reason: LossReason, loss: Stretch, first: number, end: number): void {
    this.losses.add(reason, loss);
    this.removed.add(first, end, loss.points, reason);
  }

  /**
   * Points of these sequence numbers are there again, and `unsettled` of them are to be delivered: they count neither as lost
   * nor as settled any more.
   */
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

  /** So many settled or refused points are to be delivered again. Says how many more there are than that. */
  unsettle(points: number): number {
    const settled = Math.min(this.settled, points);
    this.settled -= settled;
    const refused = Math.min(this.refused, points - settled);
    this.refused -= refused;
    return points - settled - refused;
  }

  /** Points that none of the accounts explains, given how many are unsettled. */
  unexplained(unsettled: number): number {
    return this.appended - this.settled - this.refused - this.losses.points - unsettled;
  }
}
