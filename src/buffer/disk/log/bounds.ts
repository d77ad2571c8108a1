// Enforces the limits on size, age and free disk space. Drops whole segments, oldest first, and counts their points.
import { AgentError } from "../../../core/errors.ts";
import type { LossReason } from "../counters/point-counters.ts";
import type { StoreOptions, TimestampPair } from "../segments/segment.ts";
import type { UpkeepParts } from "./checkpoint-writer.ts";

export type Bounds = ReturnType<typeof openBounds>;

export function openBounds(options: StoreOptions, { disk, folder, segments, checkpoints }: UpkeepParts) {
  const { maxSize, maxAgeMs, reserveFreeDisk, whenFull } = options;
  /** Keeps one segment with points: programs that fill the volume would take its space as well. */
  const hasMoreThanOne = () => segments.filter(({ unsettledPoints }) => unsettledPoints > 0).length > 1;

  /** Drops the oldest sealed segment. Returns the bytes that it frees; undefined if there is no sealed segment. */
  function dropOldest(reason: LossReason, now: TimestampPair): number | undefined {
    const oldest = checkpoints.oldestSealed();
    if (oldest) checkpoints.drop(oldest, reason, now);
    return oldest?.bytes;
  }

  // Counts the sizes of removed files, since file systems may report the space as free only later.
  function make(reason: LossReason, excess: number, coming: number, now: TimestampPair): void {
    let left = excess;
    if (left > 0) left -= checkpoints.removeSettled(now);
    while (left > 0) {
      if (whenFull === "block") {
        if (coming > 0) throw new AgentError("BUFFER_UNAVAILABLE", `the buffer in ${folder} is full (${reason})`);
        return;
      }
      if (reason === "reserveFreeDisk" && !hasMoreThanOne()) return;
      const bytes = dropOldest(reason, now);
      if (bytes === undefined) return;
      left -= bytes;
    }
  }

  return {
    /** Makes room for `coming` more bytes within the limits. Throws `BUFFER_UNAVAILABLE` if nothing may be dropped. */
    makeRoom(coming: number, now: TimestampPair): void {
      make("maxSize", checkpoints.bytes() + coming - maxSize, coming, now);
      if (reserveFreeDisk > 0) make("reserveFreeDisk", reserveFreeDisk + coming - disk.free(folder), coming, now);
    },
    dropOld(now: TimestampPair): void {
      for (const segment of segments.slice()) {
        if (!segment.sealed || segment.unsettledPoints === 0) continue;
        // The wall clock may jump, so a segment must also exceed `maxAge` in the time that the buffer was open.
        const wallAge = (now.wall - segment.lastWall) / 1_000;
        const openAge = checkpoints.uptime(now) - segment.lastUptime;
        if (wallAge > maxAgeMs && openAge > maxAgeMs) checkpoints.drop(segment, "maxAge", now);
      }
    },
    mayDropForFullDisk: () => whenFull === "dropOldest" && hasMoreThanOne(),
    /** Called when the volume is full. Returns the freed bytes; undefined if nothing could be dropped. */
    dropForFullDisk: (now: TimestampPair) => dropOldest("diskFull", now),
  };
}
