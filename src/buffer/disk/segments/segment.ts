// One segment of the open buffer: its file, its sequence numbers, its settled and leased points, and how its records are
// read.

import { Coverage } from "../counters/coverage.ts";
import type { PointCounters } from "../counters/point-counters.ts";
import { RangeSet } from "../counters/ranges.ts";
import { type Disk, type DiskFile, type Notes, readFile, readFully } from "../files/disk.ts";
import type { SeriesVisitor } from "../format/columns.ts";
import type { InputTable } from "../format/input-table.ts";
import { isPayloadWhole, type RecordHeader, readPoints, readRecordHeader } from "../format/record.ts";
import { type SegmentHeader, type SegmentIndex, scanSegment } from "../format/segment-file.ts";

export class Segment {
  readonly name: string;
  readonly path: string;
  header: SegmentHeader;
  /** False: the header is damaged, and most of `header` is a guess. */
  headerKnown = true;
  endSequence: number;
  bytes: number;
  /** Earliest and latest time of its points, microseconds. Undefined: unknown, or there are no points. */
  earliest: number | undefined;
  latest: number | undefined;
  /** When the last point was appended: wall time in microseconds, and total uptime of the buffer in milliseconds. */
  lastWall: number;
  lastUptime: number;
  sealed = false;
  /** The file lacks its seal, or has bytes after the last intact record. */
  needsRepair = false;
  /** Kept for the newest segments and those read last. */
  index: SegmentIndex | undefined;
  /** Settled, dropped or lost points, which will not be leased again. */
  readonly settled = new Coverage();
  /** All points in `settled`, and the leased points. */
  readonly taken = new Coverage();
  /** Number of points that `settled` covers. Only the records state how many points a series has in a range. */
  settledPoints = 0;
  /** Input numbers by place in the dictionary, kept while `isTaken` may need them without the index in memory. */
  numbers: readonly number[] | undefined;
  blocksOut = 0;

  constructor(name: string, path: string, header: SegmentHeader) {
    this.name = name;
    this.path = path;
    this.header = header;
    this.endSequence = header.first;
    this.bytes = 0;
    this.lastWall = header.created;
    this.lastUptime = 0;
  }

  get first(): number {
    return this.header.first;
  }

  get points(): number {
    return this.endSequence - this.header.first;
  }

  get unsettledPoints(): number {
    return this.points - this.settledPoints;
  }

  /** The compactor has replaced the file: it now contains only the points that were unsettled. */
  replace(header: SegmentHeader, index: SegmentIndex): void {
    this.header = header;
    this.index = index;
    this.endSequence = index.endSequence;
    this.bytes = index.endOffset;
    this.earliest = index.earliestTime;
    this.latest = index.latestTime;
    this.settled.clear();
    this.taken.clear();
    this.numbers = undefined;
    this.settledPoints = 0;
  }

  /** Marks all points as settled. The caller counts them. */
  settleAll(): void {
    this.writeOff(this.first, this.endSequence);
    this.settledPoints = this.points;
  }

  /** Marks these points as settled. The caller counts them, also in `settledPoints`. */
  writeOff(from: number, to: number): void {
    for (const coverage of [this.settled, this.taken]) coverage.addWhole(new RangeSet([from, to]));
  }

  /** Replaces series by one whole range if all points up to the last settled one are settled. */
  joinSettled(): void {
    const { settled, first } = this;
    if (settled.hasSeries && this.settledPoints === settled.end - first) this.writeOff(first, settled.end);
  }

  extend(points: number, from: number, to: number): void {
    this.endSequence += points;
    this.earliest = Math.min(this.earliest ?? from, from);
    this.latest = Math.max(this.latest ?? to, to);
  }

  /** Earliest time of the records with unsettled points; without an index, of the whole segment. */
  oldestUnsettled(): number | undefined {
    if (this.unsettledPoints === 0) return undefined;
    const { index, settled } = this;
    if (!index || settled.whole.isEmpty) return this.earliest;
    let oldest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < index.sequences.length; i++)
      if (index.earliest[i]! < oldest && !settled.coversAll(...index.rangeOf(i))) oldest = index.earliest[i]!;
    return Number.isFinite(oldest) ? oldest : this.earliest;
  }
}

// Options and environment of the store and its parts.

export interface StoreOptions {
  readonly folder: string;
  readonly integration: string;
  /** Bytes. */
  readonly maxSize: number;
  readonly maxAgeMs: number;
  /** Bytes. */
  readonly reserveFreeDisk: number;
  readonly whenFull: "dropOldest" | "block";
  readonly segmentBytes: number;
  /** Maximum points in a record of a cold segment. Undefined: the compactor's default. */
  readonly coldPoints?: number | undefined;
}

export interface LogEnvironment {
  readonly disk: Disk;
  /** Random integers from 0 to below 2^32. */
  readonly random32: () => number;
  readonly note: Notes;
}

/** The time of a call: wall time in microseconds, monotonic time in milliseconds. */
export interface TimestampPair {
  readonly wall: number;
  readonly monotonic: number;
}

export interface LogParts extends LogEnvironment {
  readonly folder: string;
  /** UUID of the buffer, 32 hexadecimal digits. */
  readonly stream: string;
  readonly integration: string;
  readonly inputs: InputTable;
  readonly counters: PointCounters;
  /** Ordered by sequence number. */
  readonly segments: Segment[];
}

// Reading: builds the index by one scan of the file, and reads records through a small window.

const windowBytes = 2 ** 20;

/** An intact record. Valid until the next one is read. */
export interface RecordBytes {
  readonly header: RecordHeader;
  readonly bytes: Uint8Array;
  readonly at: number;
}

/** Scans the whole file. Throws the disk's error. */
export function loadIndex(disk: Disk, segment: Segment, limit: number): SegmentIndex {
  const { first, salt } = segment.header;
  const known = segment.headerKnown ? salt : undefined;
  const { endSequence: end } = segment;
  const index = scanSegment(readFile(disk, segment.path), { first, salt: known, limit, end, durable: end });
  segment.header = { ...segment.header, salt: index.salt ?? salt };
  return index;
}

const mostKept = 2;

/** The indices of the segments used last. */
export class IndexCache {
  readonly #parts: LogParts;
  /** Least recently used first. */
  readonly #kept: Segment[] = [];

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  /** Calls `onLoad` if it had to read the file. Throws the disk's error. */
  of(segment: Segment, onLoad: (index: SegmentIndex) => void): SegmentIndex {
    const known = this.#kept.indexOf(segment);
    if (known >= 0) this.#kept.push(...this.#kept.splice(known, 1));
    if (segment.index) return segment.index;
    const { disk, segments } = this.#parts;
    const limit = segments[segments.indexOf(segment) + 1]?.first ?? Number.POSITIVE_INFINITY;
    const index = loadIndex(disk, segment, limit);
    segment.index = index;
    onLoad(index);
    this.keep(segment);
    return index;
  }

  keep(segment: Segment): void {
    if (!this.#kept.includes(segment)) this.#kept.push(segment);
    while (this.#kept.length > mostKept) {
      const oldest = this.#kept.shift();
      if (oldest) oldest.index = undefined;
    }
  }

  forget(segment: Segment): void {
    const at = this.#kept.indexOf(segment);
    if (at >= 0) this.#kept.splice(at, 1);
  }
}

export class SegmentReader implements Disposable {
  readonly #file: DiskFile;
  readonly #segment: Segment;
  readonly #index: SegmentIndex;
  readonly #forward: boolean;
  #window: Uint8Array<ArrayBuffer> = new Uint8Array();
  #start = 0;
  #end = 0;

  /** `forward`: the direction in which records will be read. Determines which part of the file is read ahead. */
  constructor(disk: Disk, segment: Segment, index: SegmentIndex, forward: boolean) {
    this.#file = disk.open(segment.path, "read");
    this.#segment = segment;
    this.#index = index;
    this.#forward = forward;
  }

  /** Record `at` of the index. Undefined: its bytes are damaged. Throws the disk's error. */
  record(at: number): RecordBytes | undefined {
    const from = this.#index.offsets[at]!;
    // Also covers dictionary records between two records of points.
    const to = this.#index.offsets[at + 1] ?? this.#index.endOffset;
    if (from < this.#start || to > this.#end) this.#fill(from, to);
    const offset = from - this.#start;
    const bytes = this.#window.subarray(0, this.#end - this.#start);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = readRecordHeader(bytes, view, offset, this.#segment.header.salt);
    if (!header || header.sequence !== this.#index.sequences[at] || header.points !== this.#index.points[at])
      return undefined;
    return isPayloadWhole(bytes, offset, header) ? { header, bytes, at: offset } : undefined;
  }

  /** Calls `visit` for each series of a record. False: the record is damaged. Throws as `record` and `readPoints` do. */
  visit(at: number, visit: SeriesVisitor): boolean {
    const record = this.record(at);
    if (record) readPoints(record.bytes, record.at, record.header, visit);
    return record !== undefined;
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  #fill(from: number, to: number): void {
    const size = Math.min(Math.max(windowBytes, to - from), this.#index.endOffset);
    if (this.#window.length < size) this.#window = new Uint8Array(size);
    this.#start = this.#forward ? from : Math.max(0, to - size);
    const count = Math.min(size, this.#index.endOffset - this.#start);
    this.#end = this.#start + readFully(this.#file, this.#window.subarray(0, count), this.#start);
  }
}
