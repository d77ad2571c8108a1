// Reads segments: builds the index by one scan of the file, and reads records through a small window.
import { type Disk, type DiskFile, readFile, readFully } from "../files/disk.ts";
import { readPoints, type SeriesVisitor } from "../format/columns.ts";
import { isPayloadWhole, type RecordHeader, readRecordHeader } from "../format/record.ts";
import { type SegmentIndex, scanSegment } from "../format/segment-index.ts";
import type { LogParts } from "./environment.ts";
import type { Segment } from "./segment.ts";

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
