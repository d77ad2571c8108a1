// How much is kept and for how long: whole segments of the oldest points go, and every point of them is counted.
import { AgentError } from "../../../core/errors.ts";
import type { LossReason } from "../accounts/loss-ledger.ts";
import type { Disk } from "../files/disk.ts";
import type { Moment, StoreOptions } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import type { Keeper } from "./keeper.ts";

export class Bounds {
  readonly #options: StoreOptions;
  readonly #disk: Disk;
  readonly #segments: readonly Segment[];
  readonly #keeper: Keeper;

  constructor(options: StoreOptions, disk: Disk, segments: readonly Segment[], keeper: Keeper) {
    this.#options = options;
    this.#disk = disk;
    this.#segments = segments;
    this.#keeper = keeper;
  }

  /** Makes room until `coming` bytes more keep within the bounds. Throws `BUFFER_UNAVAILABLE` where nothing may be dropped. */
  makeRoom(coming: number, now: Moment): void {
    const { folder, maxSize, reserveFreeDisk } = this.#options;
    this.#make("maxSize", this.#keeper.bytes() + coming - maxSize, coming, now);
    if (reserveFreeDisk > 0)
      this.#make("reserveFreeDisk", reserveFreeDisk + coming - this.#disk.free(folder), coming, now);
  }

  /** Drops what could not be delivered for too long. */
  dropOld(now: Moment): void {
    const { maxAgeMs } = this.#options;
    for (const segment of this.#segments.slice()) {
      if (!segment.sealed || segment.unsettledPoints === 0) continue;
      // The wall clock may jump; the time that the buffer was open does not. Old is what both call old.
      const wallAge = (now.wall - segment.lastWall) / 1_000;
      const openAge = this.#keeper.uptime(now) - segment.lastUptime;
      if (wallAge > maxAgeMs && openAge > maxAgeMs) this.#keeper.drop(segment, "maxAge", now);
    }
  }

  /** Whether there is anything to drop on a full volume. */
  get mayDropForFullDisk(): boolean {
    return this.#options.whenFull === "dropOldest" && this.#hasMoreThanOne();
  }

  /** The volume is full. Gives the bytes that came free; undefined where nothing could be dropped. */
  dropForFullDisk(now: Moment): number | undefined {
    return this.#dropOldest("diskFull", now);
  }

  // Counted down by the sizes of what was removed: file systems may show the space as free only later.
  #make(reason: LossReason, excess: number, coming: number, now: Moment): void {
    const { folder, whenFull } = this.#options;
    let left = excess;
    if (left > 0) left -= this.#keeper.removeSettled(now);
    while (left > 0) {
      if (whenFull === "block") {
        if (coming > 0) throw new AgentError("BUFFER_UNAVAILABLE", `the buffer in ${folder} is full (${reason})`);
        return;
      }
      if (reason === "reserveFreeDisk" && !this.#hasMoreThanOne()) return;
      const bytes = this.#dropOldest(reason, now);
      if (bytes === undefined) return;
      left -= bytes;
    }
  }

  /** Where others fill the volume, one segment with points stays: they would take what it frees as well. */
  #hasMoreThanOne(): boolean {
    return this.#segments.filter(({ unsettledPoints }) => unsettledPoints > 0).length > 1;
  }

  /** Bytes that came free; undefined when there is nothing to drop. */
  #dropOldest(reason: LossReason, now: Moment): number | undefined {
    const oldest = this.#keeper.oldestSealed();
    if (!oldest) return undefined;
    this.#keeper.drop(oldest, reason, now);
    return oldest.bytes;
  }
}
