// The books of the buffer: every point that came in is settled, refused, lost for a reason, or still there.

import type { BufferState } from "./buffer-state.ts";
import { LossLedger, type LossReason } from "./loss-ledger.ts";

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

  static from(state: BufferState | undefined): Accounts {
    const accounts = new Accounts();
    if (!state) return accounts;
    accounts.next = state.durable;
    accounts.origin = state.origin;
    accounts.settled = state.settled;
    accounts.refused = state.refused;
    accounts.duplicates = state.duplicates;
    accounts.collided = state.collided;
    accounts.opens = state.opens + 1;
    accounts.losses = new LossLedger(state.losses);
    // The process that had them in a request is gone.
    for (const { reason, ...leased } of state.leased) accounts.losses.add(reason as LossReason, leased);
    return accounts;
  }

  get appended(): number {
    return this.next - this.origin;
  }

  /** Points that none of the accounts explains, given how many are unsettled. */
  unexplained(unsettled: number): number {
    return this.appended - this.settled - this.refused - this.losses.points - unsettled;
  }
}
