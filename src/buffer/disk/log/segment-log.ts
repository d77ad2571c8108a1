// Appends to the newest segment. Starts a new one when it is full or after a failed write.

import { AgentError } from "../../../core/errors.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteWriter } from "../files/bytes.ts";
import { type Disk, diskErrorCode, isFull, readPart, withFile, writeFully } from "../files/disk.ts";
import { SeriesSorter } from "../format/columns.ts";
import type { PointColumns } from "../format/input-table.ts";
import { readRecordHeader, recordHeaderBytes, type Scratch } from "../format/record.ts";
import { segmentHeaderBytes } from "../format/segment-file.ts";
import type { Admission } from "../segments/late-points.ts";
import type { Segment, TimestampPair } from "../segments/segment.ts";
import { SegmentWriter } from "../segments/segment-writer.ts";
import type { RetentionPolicy, UpkeepParts } from "./retention.ts";

interface SegmentLogOptions extends UpkeepParts {
  readonly segmentBytes: number;
  readonly retention: RetentionPolicy;
  readonly beforeSeal: (next: number) => void;
}

export function segmentLog(options: SegmentLogOptions) {
  const { disk, folder, segments, inputs, counters, note, random32, stream, integration } = options;
  const { segmentBytes, retention, checkpoints, leases, beforeSeal } = options;
  const scratch: Scratch = { sorter: new SeriesSorter(), out: new ByteWriter(65_536) };
  let writer: SegmentWriter | undefined;
  let missingRoom = 0;

  /** The writer of the active segment, or of a new one. Throws `BUFFER_UNAVAILABLE` or the disk's error. */
  function ensureWriter(now: TimestampPair): SegmentWriter {
    if (writer) return writer;
    retention.makeRoom(segmentBytes, now);
    const header = {
      kind: "hot",
      salt: random32(),
      stream,
      first: counters.next,
      created: now.wall,
      generation: 0,
      integration,
    } as const;
    writer = SegmentWriter.create(header, { disk, folder, fullBytes: segmentBytes, known: segments }, scratch);
    segments.push(writer.segment);
    // The state must list the new segment, so that the next start notices if its file was deleted meanwhile.
    checkpoints.persist(now);
    return writer;
  }

  function seal(): void {
    const sealing = writer;
    writer = undefined;
    if (!sealing) return;
    beforeSeal(sealing.segment.endSequence);
    try {
      sealing.seal();
    } catch (error) {
      sealing.segment.needsRepair = true;
      note("warn", { err: String(error) }, "a segment could not be sealed");
    }
    leases.keepIndex(sealing.segment);
  }

  /** After a failed write or sync, its file descriptor is never written to again. */
  function abandonWriter(): void {
    const abandoned = writer;
    writer = undefined;
    if (!abandoned) return;
    abandoned.abandon();
    abandoned.segment.needsRepair = true;
    leases.keepIndex(abandoned.segment);
  }

  return {
    get active(): Segment | undefined {
      return writer?.segment;
    },
    seal,
    /** Writes and syncs the admitted points. If it throws, none of them or a prefix is stored. */
    append(group: PointColumns, admission: Admission, now: TimestampPair): void {
      const { count } = admission;
      let from = 0;
      let failures = 0;
      let cleared = false;
      while (from < count) {
        try {
          const active = ensureWriter(now);
          const { segment } = active;
          const before = segment.bytes;
          const upTo = active.write(group, from, admission, inputs);
          if (upTo === from) {
            seal();
            continue;
          }
          from = upTo;
          segment.lastWall = now.wall;
          segment.lastUptime = checkpoints.uptime(now);
          counters.next = segment.endSequence;
          missingRoom = 0;
          retention.stored(segment.bytes - before);
        } catch (error) {
          if (error instanceof AgentError) throw error;
          note("warn", { err: String(error) }, "a write to the buffer failed");
          abandonWriter();
          if (isFull(error)) {
            missingRoom = roomFor(count - from);
            // First delete segments that hold no undelivered points.
            const freed = checkpoints.removeSettled(now);
            if (freed > segmentHeaderBytes && !cleared) {
              cleared = true;
              continue;
            }
            if (retention.dropForWrite(missingRoom, now)) continue;
          }
          // Try once more, in a new segment.
          if (++failures > 1) throw error;
        }
      }
    },
    /** Tests whether the disk accepts writes again, without points. Throws as `append` does if not. */
    heal(now: TimestampPair): void {
      if (missingRoom > 0) probeRoom(disk, folder, missingRoom);
      ensureWriter(now);
      missingRoom = 0;
      retention.hasRoom();
    },
    /**
     * Counts the points of deleted segments as lost. If the active one was deleted, replaced or truncated, starts a new
     * one: writes to a file without a name do not outlive the process. Throws as `append` does.
     */
    leaveDeleted(now: TimestampPair): void {
      const active = writer?.segment;
      const there = new Set(disk.list(folder));
      // Also check by name: some file systems omit names from a listing while the folder changes.
      const gone = segments.filter(({ name, path }) => !there.has(name) && isGone(disk, path));
      for (const segment of gone) {
        // An earlier iteration has removed this segment.
        if (!segments.includes(segment)) continue;
        if (segment === active) {
          writer?.abandon();
          writer = undefined;
        }
        checkpoints.drop(segment, "missing", now);
      }
      if (active && writer && attempt(() => hasLastRecord(disk, active)) === false) {
        const message = "the segment being written was replaced or truncated by another program";
        note("error", { segment: active.name }, message);
        abandonWriter();
      }
      if (active && !writer) ensureWriter(now);
    },
  };
}

function isGone(disk: Disk, path: string): boolean {
  try {
    disk.open(path, "read").close();
    return false;
  } catch (error) {
    return diskErrorCode(error) === "ENOENT";
  }
}

/** Whether the file with the name of the active segment has what was written last. Throws the disk's error. */
function hasLastRecord(disk: Disk, { path, header, index }: Segment): boolean {
  const sequence = index?.sequences.at(-1);
  if (!index || sequence === undefined) return true;
  const bytes = withFile(disk, path, "read", (file) => readPart(file, index.offsets.at(-1)!, recordHeaderBytes));
  return readRecordHeader(bytes, new DataView(bytes.buffer), 0, header.salt)?.sequence === sequence;
}

/** Maximum bytes that one write of these points takes, with names and a header. */
function roomFor(points: number): number {
  return Math.min(2 ** 20, 64 * points) + 2 * segmentHeaderBytes;
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
