// Points that will never be delivered, by reason.
import type { Loss } from "../../core/buffer.ts";
import { epochMicros } from "../../core/point.ts";

/** Names of reasons, as metrics and `status` show them. */
export const lossReasons = [
  /** Dropped: the buffer had reached `maxSize`. */
  "maxSize",
  /** Dropped: not deliverable for longer than `maxAge`. */
  "maxAge",
  /** Dropped: others left less than `reserveFreeDisk` on the volume. */
  "reserveFreeDisk",
  /** Dropped: the volume was full. */
  "diskFull",
  /** Set aside: what was read is not what had been written. */
  "damaged",
  /** A segment or its end is not there any more. */
  "missing",
  /** The disk had said that the points were safe and did not have them after a restart. */
  "diskLied",
] as const;
export type LossReason = (typeof lossReasons)[number];

export class LossLedger {
  readonly #losses = new Map<string, Loss>();

  constructor(losses: readonly Loss[] = []) {
    for (const loss of losses) this.#losses.set(loss.reason, loss);
  }

  get points(): number {
    let points = 0;
    for (const loss of this.#losses.values()) points += loss.points;
    return points;
  }

  add(reason: LossReason, points: number, from: number | undefined, to: number | undefined): void {
    if (points <= 0) return;
    const before = this.#losses.get(reason);
    this.#losses.set(reason, {
      reason,
      points: (before?.points ?? 0) + points,
      from: micros(Math.min(before?.from ?? Number.POSITIVE_INFINITY, from ?? Number.POSITIVE_INFINITY)),
      to: micros(Math.max(before?.to ?? Number.NEGATIVE_INFINITY, to ?? Number.NEGATIVE_INFINITY)),
    });
  }

  list(): Loss[] {
    return [...this.#losses.values()];
  }
}

const micros = (value: number) => (Number.isFinite(value) ? epochMicros(value) : undefined);
