// Adds a row to the gap record for each interval of points that the buffer reports as lost.
import type { BufferStats, Loss, LossInterval } from "../../core/buffer.ts";
import { epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { defined } from "../../lib/values/defined.ts";
import type { AccountedLosses } from "./gap-file.ts";
import type { GapRecord } from "./gap-record.ts";

const reasons: Readonly<Record<string, string>> = {
  maxSize: "the buffer was full (buffer.maxSize), the oldest points were dropped",
  maxAge: "points were older than buffer.maxAge and were dropped",
  reserveFreeDisk: "the disk was nearly full (buffer.reserveFreeDisk), the oldest points were dropped",
  diskFull: "the disk was full, the oldest points were dropped",
  damaged: "points were damaged on the disk",
  missing: "files of the buffer were removed",
  cluster: "the cluster dropped points that were not delivered (cluster.maxAge, or data of its servers lost)",
  diskLied: "the disk did not keep what it had confirmed",
};

export function bufferGaps(record: GapRecord, clock: Clock) {
  function noteFound({ reason, found, intervals }: Loss): void {
    const known = record.losses[reason];
    const interval = intervals.find(({ number }) => number === known?.last?.number);
    if (found === undefined || !known?.last || !interval || interval.points >= known.last.points) return;
    const { points } = interval;
    if (points > 0) record.change(known.last.row, { points });
    else record.advance(known.last.row, "found", { outcome: "files of the buffer are back" });
    const last = { ...known.last, points };
    record.losses = { ...record.losses, [reason]: { points: known.points, last } };
  }

  function take(loss: Loss, before: AccountedLosses[string]): void {
    const { reason, intervals } = loss;
    const points = reportedOf(loss);
    let { last } = before;
    let left = points - before.points;
    for (const interval of intervals) {
      const known = last?.number === interval.number ? last : undefined;
      if (last && !known && interval.number <= last.number) continue;
      const added = interval.points - (known?.points ?? 0);
      if (added <= 0) continue;
      const row = known && grow(known, interval) ? known.row : add(reason, added, interval, known?.to);
      const { number, points: counted, to } = interval;
      last = { number, points: counted, row, ...(to !== undefined && { to }) };
      left -= added;
    }
    // Since the last call, there were more intervals than the buffer keeps.
    if (left > 0) add(reason, left, { from: intervals[0]?.from, to: intervals[0]?.from });
    record.losses = { ...record.losses, [reason]: { points, ...(last && { last }) } };
  }

  /** False: the row does not exist any more. */
  function grow({ row }: { readonly row: number }, { points, from, to }: LossInterval): boolean {
    if (!record.get(row)) return false;
    record.change(row, { points, ...defined({ from, to }) });
    return true;
  }

  /** Returns the number of the row. `since`: the end of the part that a deleted row has already reported. */
  function add(reason: string, points: number, { from, to }: Pick<LossInterval, "from" | "to">, since = 0): number {
    const end = to ?? clock.now();
    return record.add("ends", {
      cause: "buffer",
      reason: reasons[reason] ?? reason,
      from: epochMicros(Math.min(end, Math.max(from ?? end, since))),
      to: epochMicros(end),
      tags: 0,
      inputs: [],
      points,
    });
  }

  return {
    /** Adds a row for each interval lost since the last call, also of an earlier run. Fills rows of recovered points. */
    record({ losses }: Pick<BufferStats, "losses">): void {
      for (const loss of losses) {
        noteFound(loss);
        const known = record.losses[loss.reason];
        const reported = reportedOf(loss);
        // Fewer points than before: the buffer was replaced by another one.
        const before = known && known.points <= reported ? known : { points: 0 };
        if (reported > before.points) take(loss, before);
      }
    },
  };
}

/** All points that were ever reported as lost. */
const reportedOf = ({ points, found = 0 }: Loss) => points + found;
