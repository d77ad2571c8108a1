// Appends to the newest segment. Starts a new one when it is full or after a failed write.

import { AgentError } from "../../../core/errors.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteWriter } from "../files/bytes.ts";
import { type Disk, diskErrorCode, isFull, withFile, writeFully } from "../files/disk.ts";
import { SeriesSorter } from "../format/columns.ts";
import type { PointColumns } from "../format/input-table.ts";
import type { Scratch } from "../format/record.ts";
import { segmentHeaderBytes } from "../format/segment-header.ts";
import type { Admission } from "../segments/late-points.ts";
import type { Segment, TimestampPair } from "../segments/segment.ts";
import { SegmentWriter } from "../segments/segment-writer.ts";
import type { Bounds } from "./bounds.ts";
import type { UpkeepParts } from "./checkpoint-writer.ts";

interface SegmentLogOptions extends UpkeepParts {
  readonly segmentBytes: number;
  readonly bounds: Bounds;
  readonly beforeSeal: (next: number) => void;
}

export class SegmentLog {
  readonly #options: SegmentLogOptions;
  readonly #scratch: Scratch = { sorter: new SeriesSorter(), out: new ByteWriter(65_536) };
  readonly #fullDisk = new FullDisk();
  #writer: SegmentWriter | undefined;
  #missingRoom = 0;

  constructor(options: SegmentLogOptions) {
    this.#options = options;
  }

  get active(): Segment | undefined {
    return this.#writer?.segment;
  }

  /** Writes and syncs the admitted points. If it throws, none of them or a prefix is stored. */
  append(group: PointColumns, admission: Admission, now: TimestampPair): void {
    const { count } = admission;
    let from = 0;
    let failures = 0;
    let cleared = false;
    while (from < count) {
      try {
        const writer = this.ensureWriter(now);
        const before = writer.segment.bytes;
        const upTo = writer.write(group, from, admission, this.#options.inputs);
        if (upTo === from) {
          this.seal();
          continue;
        }
        from = upTo;
        writer.segment.lastWall = now.wall;
        writer.segment.lastUptime = this.#options.checkpoints.uptime(now);
        this.#options.counters.next = writer.segment.endSequence;
        this.#missingRoom = 0;
        this.#fullDisk.stored(writer.segment.bytes - before);
      } catch (error) {
        if (error instanceof AgentError) throw error;
        this.#options.note("warn", { err: String(error) }, "a write to the buffer failed");
        this.#abandonWriter();
        if (isFull(error)) {
          this.#missingRoom = roomFor(count - from);
          // First delete segments that hold no undelivered points.
          const freed = this.#options.checkpoints.removeSettled(now);
          if (freed > segmentHeaderBytes && !cleared) {
            cleared = true;
            continue;
          }
          if (this.#dropForRoom(now)) continue;
        }
        // Try once more, in a new segment.
        if (++failures > 1) throw error;
      }
    }
  }

  /** Tests whether the disk accepts writes again, without points. Throws as `ensureWriter` does if not. */
  heal(now: TimestampPair): void {
    if (this.#missingRoom > 0) {
      const { disk, folder } = this.#options;
      probeRoom(disk, folder, this.#missingRoom);
    }
    this.ensureWriter(now);
    this.#missingRoom = 0;
    this.#fullDisk.hasRoom();
  }

  /** The writer of the active segment, or of a new one. Throws `BUFFER_UNAVAILABLE` or the disk's error. */
  ensureWriter(now: TimestampPair): SegmentWriter {
    if (this.#writer) return this.#writer;
    const { folder, segmentBytes, stream, integration, counters, bounds, checkpoints, segments } = this.#options;
    const { disk, random32 } = this.#options;
    bounds.makeRoom(segmentBytes, now);
    const header = {
      kind: "hot",
      salt: random32(),
      stream,
      first: counters.next,
      created: now.wall,
      generation: 0,
      integration,
    } as const;
    const file = { disk, folder, fullBytes: segmentBytes, known: segments };
    this.#writer = SegmentWriter.create(header, file, this.#scratch);
    segments.push(this.#writer.segment);
    // The state must list the new segment, so that the next start notices if its file was deleted meanwhile.
    checkpoints.persist(now);
    return this.#writer;
  }

  /**
   * Counts the points of deleted segments as lost. If the active one was deleted, starts a new one: writes to a deleted
   * file do not outlive the process. Throws as `ensureWriter` does.
   */
  leaveDeleted(now: TimestampPair): void {
    const { disk, folder, checkpoints, segments } = this.#options;
    const { active } = this;
    const there = new Set(disk.list(folder));
    // Also check by name: some file systems omit names from a listing while the folder changes.
    const gone = segments.filter(({ name, path }) => !there.has(name) && isGone(disk, path));
    for (const segment of gone) {
      // An earlier iteration has removed this segment.
      if (!segments.includes(segment)) continue;
      if (segment === active) {
        this.#writer?.abandon();
        this.#writer = undefined;
      }
      checkpoints.drop(segment, "missing", now);
    }
    if (active && !this.#writer) this.ensureWriter(now);
  }

  seal(): void {
    const writer = this.#writer;
    this.#writer = undefined;
    if (!writer) return;
    this.#options.beforeSeal(writer.segment.endSequence);
    try {
      writer.seal();
    } catch (error) {
      writer.segment.needsRepair = true;
      this.#options.note("warn", { err: String(error) }, "a segment could not be sealed");
    }
    this.#options.leases.keepIndex(writer.segment);
  }

  #dropForRoom(now: TimestampPair): boolean {
    const { bounds } = this.#options;
    if (!bounds.mayDropForFullDisk() || !this.#fullDisk.mayDrop(this.#missingRoom, now.monotonic)) return false;
    const bytes = bounds.dropForFullDisk(now);
    if (bytes === undefined) return false;
    this.#fullDisk.dropped(bytes - segmentHeaderBytes);
    return true;
  }

  /** After a failed write or sync, its file descriptor is never written to again. */
  #abandonWriter(): void {
    const writer = this.#writer;
    this.#writer = undefined;
    if (!writer) return;
    writer.abandon();
    writer.segment.needsRepair = true;
    this.#options.leases.keepIndex(writer.segment);
  }
}

function isGone(disk: Disk, path: string): boolean {
  try {
    disk.open(path, "read").close();
    return false;
  } catch (error) {
    return diskErrorCode(error) === "ENOENT";
  }
}

/** Maximum bytes that one write of these points takes, with names and a header. */
function roomFor(points: number): number {
  return Math.min(2 ** 20, 64 * points) + 2 * segmentHeaderBytes;
}

// Decides when a full volume justifies dropping stored points: only after a grace period, and only while the buffer
// itself gets the space that a drop frees. Otherwise the programs that fill the volume would take all of it.
/** Grace period: appends fail, which applies back-pressure, before segments may be dropped. */
export const graceMs = 60_000;

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

  /** The volume has room. The next failure starts a new grace period. */
  hasRoom(): void {
    this.#since = undefined;
    this.#freed = 0;
    this.#stored = 0;
    this.#holds = false;
  }
}

const probeName = "room.tmp";

/** Throws the disk's error unless `bytes` more can be written. The free space of a volume does not show quotas. */
function probeRoom(disk: Disk, folder: string, bytes: number): void {
  const path = `${folder}/${probeName}`;
  attempt(() => disk.remove(path));
  try {
    withFile(disk, path, "create", (file) => {
      // Some file systems do not allocate blocks for zeros.
      writeFully(file, new Uint8Array(bytes).fill(0xa5), 0);
      file.sync();
    });
  } finally {
    attempt(() => disk.remove(path));
  }
}
