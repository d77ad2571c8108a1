// How segments leave the log: settled ones once the state is written, others by the retention policy. The order is: write
// the state, delete the files, sync the folder.

import { AgentError } from "../../../core/errors.ts";
import type { LeaseTable } from "../blocks/lease-table.ts";
import { joinedSpan, type LossReason } from "../counters/point-counters.ts";
import type { BufferState, SegmentState, StateFile } from "../counters/state-file.ts";
import { ifThere, isFull } from "../files/disk.ts";
import { segmentHeaderBytes } from "../format/segment-file.ts";
import type { LogParts, Segment, StoreOptions, TimestampPair } from "../segments/segment.ts";

export interface CheckpointWriterOptions extends LogParts {
  readonly leases: LeaseTable;
  readonly stateFile: StateFile;
  /** Milliseconds that the buffer was open in earlier runs, and the monotonic time at which it was opened now. */
  readonly uptimeBefore: number;
  readonly opened: number;
}

/** A changed state is written at the first tick after this time. */
const persistEveryMs = 5_000;

/** Shared by the parts that write, remove, check and compact segments. */
export interface UpkeepParts extends LogParts {
  readonly leases: LeaseTable;
  readonly checkpoints: CheckpointWriter;
}

export type CheckpointWriter = ReturnType<typeof checkpointWriter>;

export function checkpointWriter(options: CheckpointWriterOptions) {
  const { counters, disk, folder, note, segments, leases, stateFile, stream, integration, uptimeBefore, opened } =
    options;
  /** States of removed segments whose folder is not synced yet: a power cut may bring them back. */
  let removed: SegmentState[] = [];
  let persistedAt = Number.NEGATIVE_INFINITY;
  let uptimeWritten = uptimeBefore;

  const uptime = (now: TimestampPair) => uptimeBefore + now.monotonic - opened;
  const bytes = () => bytesOf(segments);
  const reportFailedWrite = (error: unknown) =>
    note("warn", { err: String(error) }, "the state of the buffer could not be written");

  function state(): BufferState {
    const { opens, next, origin, settled, refused, duplicates, collided, losses } = counters;
    const listed = removed.slice();
    for (const segment of segments) if (!segment.settled.isEmpty) listed.push(stateOf(segment));
    const counts = { opens, uptime: uptimeWritten, durable: next, origin, settled, refused, duplicates, collided };
    const newest = segments.find(({ sealed }) => !sealed)?.name ?? "";
    const starts = segments.map(({ first }) => first);
    const gone = { losses: losses.list(), ...leases.dropped.state() };
    return { stream, ...counts, integration, segments: listed, newest, ...timesOf(segments), ...gone, starts };
  }

  function write(now: TimestampPair): void {
    uptimeWritten = uptime(now);
    stateFile.write(state(), true);
    counters.changed = false;
  }

  function remove(): number {
    const gone = segments.filter(isDone);
    if (gone.length === 0 && removed.length === 0) return 0;
    try {
      for (const segment of gone) {
        // The file may have been deleted already.
        ifThere(() => disk.remove(segment.path));
        removed.push(stateOf(segment));
        counters.removed.add(segment.first, segment.endSequence);
        segments.splice(segments.indexOf(segment), 1);
        leases.forget(segment);
      }
      disk.syncFolder(folder);
      removed = [];
    } catch (error) {
      note("warn", { err: String(error) }, "a segment could not be removed");
    }
    // The state on disk still lists these segments. The next one drops them, or tries again to sync the folder.
    counters.changed = true;
    return gone.length;
  }

  /** Writes and syncs the state, then removes settled segments. False: not written; the next due write repeats it. */
  function persist(now: TimestampPair): boolean {
    persistedAt = now.monotonic;
    try {
      write(now);
    } catch (error) {
      reportFailedWrite(error);
      // Only a full disk justifies removing segments before the state is written: it could stay full forever.
      if (!isFull(error) || remove() === 0) return false;
      try {
        write(now);
      } catch {
        return false;
      }
    }
    remove();
    return true;
  }

  return {
    /** Milliseconds that the buffer was open, over all runs. */
    uptime,
    bytes,
    persist,
    persistWhenDue(now: TimestampPair): void {
      if (now.monotonic - persistedAt >= persistEveryMs && counters.changed) persist(now);
    },
    /**
     * Writes the state after points were settled. Without `sync`, it survives a kill but not a power cut. If the write
     * fails, the next due write repeats it.
     */
    writeSettled(sync: boolean): void {
      try {
        stateFile.write(state(), sync);
      } catch (error) {
        reportFailedWrite(error);
      }
    },
    drop(segment: Segment, reason: LossReason, now: TimestampPair): void {
      let points = 0;
      for (const range of leases.drop(segment, reason).ranges) {
        counters.losses.add(reason, range);
        points += range.points;
      }
      counters.removed.add(segment.first, segment.endSequence, points, reason);
      counters.changed = true;
      const message = reason === "missing" ? "stored points are missing" : "dropped the oldest points";
      if (points > 0) note("error", { points, reason, segment: segment.name }, message);
      persist(now);
    },
    removeSettled(now: TimestampPair): number {
      const before = bytes();
      if (segments.some(isDone)) persist(now);
      return before - bytes();
    },
  };
}

const bytesOf = (segments: readonly Segment[]) => segments.reduce((sum, { bytes }) => sum + bytes, 0);
const isDone = ({ sealed, unsettledPoints }: Segment) => sealed && unsettledPoints === 0;

function stateOf({ name, header, settledPoints, settled }: Segment): SegmentState {
  return { name, salt: header.salt, settledBySeries: settledPoints - settled.whole.count, ...settled.state() };
}

function timesOf(segments: readonly Segment[]) {
  let span = joinedSpan(undefined, { points: 0, from: undefined, to: undefined });
  for (const { unsettledPoints, earliest: from, latest: to } of segments)
    if (unsettledPoints > 0) span = joinedSpan(span, { points: 0, from, to });
  return { oldest: span.from, latest: span.to };
}

/** Grace period: appends fail, which applies back-pressure, before segments may be dropped for a full volume. */
const graceMs = 60_000;

export type RetentionPolicy = ReturnType<typeof retentionPolicy>;

/**
 * Enforces the limits on size, age and free disk space, and makes room on a full volume. Drops whole segments, oldest
 * first, and counts their points.
 */
export function retentionPolicy(options: StoreOptions, { disk, folder, segments, checkpoints }: UpkeepParts) {
  const { maxSize, maxAgeMs, reserveFreeDisk, whenFull } = options;
  const fullDisk = new FullDisk();
  /** Keeps one segment with points: programs that fill the volume would take its space as well. */
  const hasMoreThanOne = () => segments.filter(({ unsettledPoints }) => unsettledPoints > 0).length > 1;

  /** Drops the oldest sealed segment. Returns the bytes that it frees; undefined if there is no sealed segment. */
  function dropOldest(reason: LossReason, now: TimestampPair): number | undefined {
    // Even if it has leased blocks.
    const oldest = segments.find(({ sealed, unsettledPoints }) => sealed && unsettledPoints > 0);
    if (oldest) checkpoints.drop(oldest, reason, now);
    return oldest?.bytes;
  }

  // Counts the sizes of removed files, since file systems may report the space as free only later.
  function make(reason: LossReason, excess: number, coming: number, now: TimestampPair): void {
    let left = excess;
    if (left > 0) left -= checkpoints.removeSettled(now);
    // While these cannot be removed, for example because the state cannot be written, dropping more wins no room.
    left -= bytesOf(segments.filter(isDone));
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
    /**
     * After a write of `needed` bytes failed on a full volume: drops a segment if the policy permits it now. Returns whether
     * it did, so that the write may be repeated.
     */
    dropForWrite(needed: number, now: TimestampPair): boolean {
      if (whenFull === "block" || !hasMoreThanOne() || !fullDisk.mayDrop(needed, now.monotonic)) return false;
      const bytes = dropOldest("diskFull", now);
      if (bytes !== undefined) fullDisk.dropped(bytes - segmentHeaderBytes);
      return bytes !== undefined;
    },
    /** A write stored `bytes`. */
    stored: (bytes: number) => fullDisk.stored(bytes),
    /** The volume has room. The next failure starts a new grace period. */
    hasRoom: () => fullDisk.hasRoom(),
  };
}

/**
 * Decides when a full volume justifies dropping stored points: only after a grace period, and only while the buffer
 * itself gets the space that a drop frees. Otherwise the programs that fill the volume would take all of it.
 */
class FullDisk {
  /** Monotonic time in milliseconds of the first failed write since the last success. */
  #since: number | undefined;
  /** Bytes that the last drops freed, and bytes stored since. Both exclude segment headers. */
  #freed = 0;
  #stored = 0;
  /** The last drop gained the buffer too little space: no further drops until the volume has room. */
  #holds = false;

  /** After a write of `needed` bytes failed on a full volume: returns whether a segment may be dropped. */
  mayDrop(needed: number, now: number): boolean {
    if (this.#holds) return false;
    if (this.#freed > 0) {
      // At least half of the freed space now holds points, so the next drop needs no grace period.
      if (this.#stored * 2 >= this.#freed) {
        this.#freed = 0;
        this.#stored = 0;
        return true;
      }
      // One small segment may not free enough for the write.
      if (this.#stored === 0 && this.#freed < needed) return true;
      this.#holds = true;
      return false;
    }
    this.#since ??= now;
    return now - this.#since >= graceMs;
  }

  dropped(bytes: number): void {
    this.#freed += Math.max(1, bytes);
  }

  stored(bytes: number): void {
    this.#stored += bytes;
    // More was stored than the drops freed: other programs freed space.
    if (this.#freed === 0 || this.#holds || this.#stored > 2 * this.#freed) this.hasRoom();
  }

  hasRoom(): void {
    this.#since = undefined;
    this.#freed = 0;
    this.#stored = 0;
    this.#holds = false;
  }
}
