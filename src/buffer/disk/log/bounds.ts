// How much is kept and for how long: whole segments of the oldest points go, and every point of them is counted.
import { AgentError } from "../../../core/errors.ts";
import type { LossReason } from "../accounts/loss-ledger.ts";
import type { Moment, StoreOptions } from "../segments/environment.ts";
import type { UpkeepParts } from "./keeper.ts";

export type Bounds = ReturnType<typeof openBounds>;

export function openBounds(options: StoreOptions, { disk, folder, segments, keeper }: UpkeepParts) {
  const { maxSize, maxAgeMs, reserveFreeDisk, whenFull } = options;
  /** Where others fill the volume, one segment with points stays: they would take what it frees as well. */
  const hasMoreThanOne = () => segments.filter(({ unsettledPoints }) => unsettledPoints > 0).length > 1;

  /** Drops the oldest sealed segment. Returns the bytes that it frees; undefined if there is no sealed segment. */
  function dropOldest(reason: LossReason, now: Moment): number | undefined {
    const oldest = keeper.oldestSealed();
    if (oldest) keeper.drop(oldest, reason, now);
    return oldest?.bytes;
  }

  // Counted down by the sizes of what was removed: file systems may show the space as free only later.
  function make(reason: LossReason, excess: number, coming: number, now: Moment): void {
    let left = excess;
    if (left > 0) left -= keeper.removeSettled(now);
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
    /** Makes room until `coming` bytes more keep within the bounds. Throws `BUFFER_UNAVAILABLE` where nothing may be dropped. */
    makeRoom(coming: number, now: Moment): void {
      make("maxSize", keeper.bytes() + coming - maxSize, coming, now);
      if (reserveFreeDisk > 0) make("reserveFreeDisk", reserveFreeDisk + coming - disk.free(folder), coming, now);
    },
    /** Drops what could not be delivered for too long. */
    dropOld(now: Moment): void {
      for (const segment of segments.slice()) {
        if (!segment.sealed || segment.unsettledPoints === 0) continue;
        // The wall clock may jump; the time that the buffer was open does not. Old is what both call old.
        const wallAge = (now.wall - segment.lastWall) / 1_000;
        const openAge = keeper.uptime(now) - segment.lastUptime;
        if (wallAge > maxAgeMs && openAge > maxAgeMs) keeper.drop(segment, "maxAge", now);
      }
    },
    /** Whether there is anything to drop on a full volume. */
    mayDropForFullDisk: () => whenFull === "dropOldest" && hasMoreThanOne(),
    /** The volume is full. Gives the bytes that came free; undefined where nothing could be dropped. */
    dropForFullDisk: (now: Moment) => dropOldest("diskFull", now),
  };
}
