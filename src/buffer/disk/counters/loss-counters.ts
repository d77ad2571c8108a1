// Counts points that will never be delivered, by reason.
import type { Loss } from "../../../core/buffer.ts";
import { epochMicros } from "../../../core/point.ts";

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
      ...(before?.found && { found: before.found }),
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
