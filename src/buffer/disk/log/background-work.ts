// Background work on sealed segments during an outage, in small steps that do not delay commits: compaction and scrubbing.
//
// Compaction rewrites segments more densely: many records become one, in which each series is one long column,
// compressed with zstd. Settled points are left out.
//
// The order of steps survives a crash at any point, with one of the two files under the segment's name:
// 1. write the new segment to a temporary file and sync it,
// 2. write the state, so that the counters include all settled points that are left out,
// 3. rename the file to the name of the old segment and sync the folder.
// The new segment has another salt, so the state of the old one is not applied to it.
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteWriter } from "../files/bytes.ts";
import { type DiskFile, readPart, withFile, writeFully } from "../files/disk.ts";
import { SeriesSorter } from "../format/columns.ts";
import {
  isPayloadWhole,
  maxPayloadBytes,
  readRecordHeader,
  recordBytes,
  recordHeaderBytes,
  SegmentEncoder,
} from "../format/record.ts";
import { type SegmentHeader, SegmentIndex, segmentHeaderBytes, writeSegmentHeader } from "../format/segment-file.ts";
import { type Segment, SegmentReader, type TimestampPair } from "../segments/segment.ts";
import { sealOf, writeSeal } from "../segments/segment-writer.ts";
import type { UpkeepParts } from "./retention.ts";

/** Temporary file of a compaction. If a crash leaves it behind, the next compaction removes it. */
const compactionFile = "compaction.tmp";
/** Minimum age of a segment for either, measured from its last point: most outages are shorter. */
const coldAfterMs = 60_000;
/** Maximum points in one record. Larger records compress little better and lose more points if damaged. */
const slabPoints = 65_536;

export interface CompactorOptions extends UpkeepParts {
  /** Maximum points in one record, unless a single record of the hot segment has more. Undefined: `slabPoints`. */
  readonly coldPoints: number | undefined;
}

interface Job {
  readonly segment: Segment;
  readonly index: SegmentIndex;
  readonly unsettled: number;
  readonly header: SegmentHeader;
  readonly file: DiskFile;
  readonly encoder: SegmentEncoder;
  readonly target: SegmentIndex;
  nextRecord: number;
}

export function openCompactor(options: CompactorOptions) {
  const { counters, disk, folder, inputs, random32, segments, leases, checkpoints, note, coldPoints } = options;
  const path = `${folder}/${compactionFile}`;
  const mostPoints = Math.min(slabPoints, coldPoints ?? slabPoints);
  const scratch = { sorter: new SeriesSorter(), out: new ByteWriter() };
  /** Segments that were being delivered or failed to compact, and the uptime until which to skip them. */
  const skipped = new Map<Segment, number>();
  let job: Job | undefined;

  function start(now: TimestampPair): void {
    const uptime = checkpoints.uptime(now);
    for (const [segment, until] of skipped) if (uptime > until) skipped.delete(segment);
    const segment = segments.find(
      (each) =>
        each.sealed &&
        each.headerKnown &&
        !each.needsRepair &&
        each.header.kind === "hot" &&
        each.unsettledPoints > 0 &&
        each.blocksOut === 0 &&
        uptime - each.lastUptime > coldAfterMs &&
        !skipped.has(each),
    );
    if (!segment) return;
    const index = leases.index(segment);
    // Damaged records stay unchanged: they are counted by their sequence numbers, and remain available for inspection.
    if (index.damage.length > 0 || counters.removed.within(segment.first, segment.endSequence).length > 0) {
      skipped.set(segment, Number.POSITIVE_INFINITY);
      return;
    }
    if (disk.list(folder).includes(compactionFile)) disk.remove(path);
    const salt = random32();
    const header = { ...segment.header, kind: "cold", salt, generation: segment.header.generation + 1 } as const;
    const file = disk.open(path, "create");
    const encoder = new SegmentEncoder({ salt, isCold: true }, scratch);
    const target = new SegmentIndex(segment.first, salt);
    // From here on, a failure closes the file and skips the segment.
    job = { segment, index, unsettled: segment.unsettledPoints, header, file, encoder, target, nextRecord: 0 };
    writeFully(file, writeSegmentHeader(header), 0);
  }

  function isUndisturbed({ segment, unsettled }: Job): boolean {
    return segments.includes(segment) && segment.blocksOut === 0 && segment.unsettledPoints === unsettled;
  }

  function skip({ segment }: Job, now: TimestampPair): void {
    skipped.set(segment, checkpoints.uptime(now) + coldAfterMs);
    stop();
  }

  function stop(): void {
    const file = job?.file;
    job = undefined;
    if (!file) return;
    // If this fails, the next compaction removes the file.
    attempt(() => file.close());
    attempt(() => disk.remove(path));
  }

  function rewriteSlab(current: Job): void {
    const { segment, index, target, encoder, file } = current;
    const first = current.nextRecord;
    let end = first;
    let room = mostPoints;
    while (end < index.sequences.length && (end === first || index.points[end]! <= room)) room -= index.points[end++]!;
    const points = gather(segment, index, first, end);
    current.nextRecord = end;
    // Sorting keeps the order of equal times; a record with any late point counts as late.
    const late = index.late.slice(first, end).includes(true);
    for (let from = 0, to = points.count; from < points.count; ) {
      encoder.out.cut();
      const known = encoder.names.length;
      const record = encoder.encode(points, { from, to, late }, target.endSequence, inputs);
      if (record.bytes > maxPayloadBytes) {
        // Many series with separate times and noisy values may exceed a record: try again with half of the points.
        encoder.forget(known, inputs);
        to = from + Math.ceil((to - from) / 2);
        continue;
      }
      writeFully(file, encoder.out.written(), target.endOffset);
      target.add(target.endOffset + record.offset, record);
      target.endOffset += encoder.out.length;
      [from, to] = [to, points.count];
    }
  }

  function gather(segment: Segment, index: SegmentIndex, first: number, end: number) {
    const { settled } = segment;
    let room = 0;
    for (let i = first; i < end; i++) room += index.points[i]!;
    const points = { inputs: new Uint32Array(room), times: new Float64Array(room), values: new Float64Array(room) };
    const numbers = index.dictionary.map((name) => (name === undefined ? -1 : inputs.numberOf(name)));
    let count = 0;
    using reader = new SegmentReader(disk, segment, index, true);
    for (let i = first; i < end; i++) {
      const [from, to] = index.rangeOf(i);
      if (settled.coversAll(from, to)) continue;
      const mayBeSettled = settled.hasSeries;
      const isRead = reader.visit(i, (place, times, values) => {
        const number = numbers[place] ?? -1;
        if (number < 0) throw new Error(`a name in ${segment.name} is damaged`);
        if (mayBeSettled && settled.covers(place, from, to)) return;
        points.inputs.fill(number, count, count + times.length);
        points.times.set(times, count);
        points.values.set(values, count);
        count += times.length;
      });
      if (!isRead) throw new Error(`a record of ${segment.name} is damaged`);
    }
    return { ...points, count };
  }

  function finish({ segment, target, encoder, file, header, unsettled }: Job, now: TimestampPair): void {
    if (target.endSequence - segment.first !== unsettled)
      throw new Error(`${segment.name} holds other points than are accounted for`);
    const { out } = encoder;
    out.cut();
    encoder.writeDictionary(0, target.endSequence);
    const { endSequence, earliestTime: earliest = Number.NaN, latestTime: latest = Number.NaN } = target;
    writeSeal(out, { ...sealOf(segment), endSequence, earliest, latest }, header.salt);
    writeFully(file, out.written(), target.endOffset);
    target.endOffset += out.length;
    file.sync();
    // The counters must include the settled points on disk before these are removed.
    if (!checkpoints.persist(now)) throw new Error("the state could not be written");
    disk.rename(path, segment.path);
    job = undefined;
    attempt(() => file.close());
    for (const name of encoder.names) target.dictionary.push(name);
    target.sealed = true;
    const { endSequence: endBefore } = segment;
    segment.replace(header, target);
    counters.removed.add(segment.endSequence, endBefore);
    leases.keepIndex(segment);
    counters.changed = true;
    disk.syncFolder(folder);
  }

  return {
    /** Does about 10 ms of work. Returns whether there is more. Never throws. */
    step(now: TimestampPair): boolean {
      try {
        if (!job) start(now);
        if (!job) return false;
        if (!isUndisturbed(job)) skip(job, now);
        else if (job.nextRecord < job.index.sequences.length) rewriteSlab(job);
        else finish(job, now);
        return true;
      } catch (error) {
        note("warn", { err: String(error) }, "a segment could not be compacted");
        if (job) skip(job, now);
        return false;
      }
    },
    stop,
  };
}

// Scrubbing checks segments, so that damage is reported while the disk can still be replaced, not days later when the
// segment is delivered.
//
// Checks 1 MiB every 2 s, which takes about 3 ms of the log thread: 2 GiB take 70 minutes. A segment is checked when it
// is a minute old, and again every hour.

const pieceBytes = 2 ** 20;
const everyMs = 1_900;
const againAfterMs = 3_600_000;

/** Returns a function that checks one piece if due. It never throws. */
export function openScrubber(parts: UpkeepParts): (now: TimestampPair) => void {
  const { counters, disk, checkpoints, note, segments, leases } = parts;
  /** The uptime in milliseconds and the salt of each segment at its last check. */
  const checked = new WeakMap<Segment, { readonly at: number; readonly salt: number }>();
  let last = Number.NEGATIVE_INFINITY;
  /** The current check: all bytes before `at` are intact. */
  let job: { readonly segment: Segment; readonly salt: number; at: number } | undefined;

  function isDue(segment: Segment, uptime: number): boolean {
    const { header, lastUptime, needsRepair, sealed, unsettledPoints } = segment;
    if (!sealed || unsettledPoints === 0 || needsRepair || uptime - lastUptime <= coldAfterMs) return false;
    const before = checked.get(segment);
    return before?.salt !== header.salt || uptime - before.at > againAfterMs;
  }

  /** Checks one piece from `from` on, or one longer record. Returns the end of the checked bytes. */
  function check(segment: Segment, from: number): number | "damaged" {
    return withFile(disk, segment.path, "read", (file) => {
      let bytes = readPart(file, from, Math.min(pieceBytes, segment.bytes - from));
      let view = new DataView(bytes.buffer);
      let at = 0;
      while (from + at < segment.bytes) {
        if (at > 0 && at + recordHeaderBytes > bytes.length) break;
        const header = readRecordHeader(bytes, view, at, segment.header.salt);
        if (!header) return "damaged";
        const end = at + recordBytes(header.length);
        if (end > bytes.length) {
          if (at > 0) break;
          bytes = readPart(file, from, end);
          view = new DataView(bytes.buffer);
        }
        if (!isPayloadWhole(bytes, at, header)) return "damaged";
        at = end;
      }
      return from + at;
    });
  }

  return (now) => {
    if (now.monotonic - last < everyMs) return;
    const uptime = checkpoints.uptime(now);
    // The segment was rewritten or dropped since.
    if (job && (!segments.includes(job.segment) || job.segment.header.salt !== job.salt)) job = undefined;
    const segment = job?.segment ?? segments.find((each) => isDue(each, uptime));
    if (!segment) return;
    job ??= { segment, salt: segment.header.salt, at: segmentHeaderBytes };
    last = now.monotonic;
    try {
      const at = check(segment, job.at);
      if (at !== "damaged" && at < segment.bytes) {
        job.at = at;
        return;
      }
      if (at === "damaged") {
        segment.index = undefined;
        leases.index(segment);
        // Persist the loss at once: otherwise a power cut would make the reported count go down.
        if (counters.changed) checkpoints.persist(now);
      }
    } catch (error) {
      note("error", { segment: segment.name, err: String(error) }, "a segment cannot be read");
    }
    checked.set(segment, { at: uptime, salt: segment.header.salt });
    job = undefined;
  };
}
