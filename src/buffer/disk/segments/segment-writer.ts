// Writes the active segment: one write and one sync per group of points.
//
// The file has its full length from the start, and zeros are written ahead of the points. So a commit changes no
// metadata, neither length nor allocated blocks. A sync then causes a quarter of the wear and takes half of the time.
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteReader, ByteWriter } from "../files/bytes.ts";
import { type Disk, type DiskFile, isFull, withFile, writeFully } from "../files/disk.ts";
import type { InputTable, PointColumns } from "../format/input-table.ts";
import {
  type EncodedRecord,
  isPayloadWhole,
  readRecordHeader,
  recordBytes,
  recordHeaderBytes,
  recordTypes,
  type Scratch,
  SegmentEncoder,
  writeRecord,
} from "../format/record.ts";
import {
  type SegmentHeader,
  SegmentIndex,
  segmentHeaderBytes,
  segmentName,
  writeSegmentHeader,
} from "../format/segment-file.ts";
import type { Admission } from "./late-points.ts";
import { Segment } from "./segment.ts";

/** Maximum points in one record, and so the most that one damaged place costs. */
const maxRecordPoints = 8_192;
/** A larger group continues in another write, to bound the memory. */
const maxWriteBytes = 2 ** 20;

/** Zeros written ahead to allocate blocks. The bytes were zero before, so a crash changes nothing. */
const zeros = new Uint8Array(64 * 1_024);

export interface SegmentWriterOptions {
  readonly disk: Disk;
  readonly folder: string;
  /** Length of the file. A record that does not fit goes into the next segment. */
  readonly fullBytes: number;
  /** Known segments. Names of those without a file are not reused, since that file is to be removed. */
  readonly known: readonly Segment[];
}

export class SegmentWriter {
  readonly segment: Segment;
  readonly #options: SegmentWriterOptions;
  readonly #file: DiskFile;
  readonly #index: SegmentIndex;
  readonly #encoder: SegmentEncoder;
  #unclaimed = segmentHeaderBytes;

  private constructor(segment: Segment, file: DiskFile, options: SegmentWriterOptions, scratch: Scratch) {
    const { salt } = segment.header;
    this.segment = segment;
    this.#file = file;
    this.#options = options;
    this.#encoder = new SegmentEncoder({ salt }, scratch);
    this.#index = new SegmentIndex(segment.first, salt);
    segment.index = this.#index;
    segment.bytes = segmentHeaderBytes;
  }

  /** Creates an empty segment that survives a power cut. Throws the disk's error; then no file is left. */
  static create(header: SegmentHeader, options: SegmentWriterOptions, scratch: Scratch): SegmentWriter {
    const { disk, folder, known } = options;
    for (let place = 0; ; place++) {
      const name = segmentName(header.first, place);
      if (known.some((segment) => segment.name === name) || disk.list(folder).includes(name)) continue;
      const path = `${folder}/${name}`;
      const file = disk.open(path, "create");
      try {
        file.setSize(options.fullBytes);
        writeFully(file, writeSegmentHeader(header), 0);
        file.sync();
        disk.syncFolder(folder);
        return new SegmentWriter(new Segment(name, path, header), file, options, scratch);
      } catch (error) {
        attempt(() => file.close());
        attempt(() => disk.remove(path));
        throw error;
      }
    }
  }

  /**
   * Writes and syncs the admitted points from `from` on, late ones in separate records, as many as fit. Returns the
   * index after the last durable point, or `from` itself if the segment is full. Throws the disk's error; then this
   * writer must be abandoned.
   */
  write(points: PointColumns, from: number, { count: to, inOrder }: Admission, inputs: InputTable): number {
    const encoder = this.#encoder;
    const { out } = encoder;
    const records: EncodedRecord[] = [];
    const start = this.#index.endOffset;
    out.cut();
    let at = from;
    let sequence = this.#index.endSequence;
    while (at < to && out.length < maxWriteBytes) {
      const late = at >= inOrder;
      const end = Math.min(late ? to : inOrder, at + maxRecordPoints);
      const before = out.length;
      const known = encoder.names.length;
      const record = encoder.encode(points, { from: at, to: end, late }, sequence, inputs);
      // The first record of a segment is written regardless of its size.
      if (start + out.length > this.#options.fullBytes && (at > from || this.#index.sequences.length > 0)) {
        out.cut(before);
        encoder.forget(known, inputs);
        break;
      }
      records.push(record);
      sequence += end - at;
      at = end;
    }
    if (records.length === 0) return from;
    writeFully(this.#file, out.written(), start);
    this.#claimBlocks(start + out.length);
    this.#file.sync();
    this.#index.endOffset = start + out.length;
    this.segment.bytes = this.#index.endOffset;
    const { dictionary } = this.#index;
    for (let i = dictionary.length; i < encoder.names.length; i++) dictionary.push(encoder.names[i]);
    for (const record of records) {
      this.#index.add(start + record.offset, record);
      this.segment.extend(record.points, record.from, record.to);
    }
    return at;
  }

  /** Allocates blocks for the next writes. Throws the disk's error unless the disk is full. */
  #claimBlocks(end: number): void {
    if (end <= this.#unclaimed) return;
    const length = Math.max(0, Math.min(zeros.length, this.#options.fullBytes - end));
    try {
      if (length > 0) this.#file.write(zeros.subarray(0, length), end);
    } catch (error) {
      if (!isFull(error)) throw error;
    }
    this.#unclaimed = end + length;
  }

  /** Writes the seal and truncates the file after it. Throws the disk's error; the points are durable even then. */
  seal(): void {
    const { segment } = this;
    const { out } = this.#encoder;
    out.cut();
    this.#encoder.writeDictionary(0, segment.endSequence);
    writeSeal(out, sealOf(segment), segment.header.salt);
    segment.sealed = true;
    try {
      writeFully(this.#file, out.written(), this.#index.endOffset);
      this.#index.endOffset += out.length;
      this.#file.setSize(this.#index.endOffset);
      this.#file.sync();
      segment.bytes = this.#index.endOffset;
    } finally {
      attempt(() => this.#file.close());
    }
  }

  /** Closes the file and marks the segment as sealed. After a failed sync, only earlier syncs are reliable. */
  abandon(): void {
    this.segment.sealed = true;
    attempt(() => this.#file.close());
  }
}

// The seal, the last record of a sealed segment. It holds the totals and is found without reading the rest.

/** Totals of a segment. Times in microseconds; `earliest` and `latest` are NaN if there are no points. */
interface Seal {
  readonly endSequence: number;
  readonly earliest: number;
  readonly latest: number;
  readonly lastWall: number;
  /** Uptime of the buffer in milliseconds, over all runs, when the last point was appended. */
  readonly lastUptime: number;
}

export function sealOf({ endSequence, earliest, latest, lastWall, lastUptime }: Segment): Seal {
  return { endSequence, earliest: earliest ?? Number.NaN, latest: latest ?? Number.NaN, lastWall, lastUptime };
}

const payloadBytes = 24;
export const sealBytes = recordBytes(payloadBytes);

export function writeSeal(out: ByteWriter, seal: Seal, salt: number): void {
  const fields = {
    type: recordTypes.seal,
    points: 0,
    sequence: seal.endSequence,
    from: seal.earliest,
    to: seal.latest,
    salt,
  };
  const payload = (writer: ByteWriter) => {
    writer.f64(seal.lastWall);
    writer.f64(seal.lastUptime);
    writer.f64(0);
    return 1;
  };
  writeRecord(out, fields, payload);
}

/** Reads the seal from the last `sealBytes` of a file. Undefined: the segment is not sealed, or the seal is damaged. */
export function readSeal(bytes: Uint8Array, salt: number): Seal | undefined {
  if (bytes.length !== sealBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = readRecordHeader(bytes, view, 0, salt);
  if (header?.type !== recordTypes.seal || header.length !== payloadBytes) return undefined;
  if (!isPayloadWhole(bytes, 0, header)) return undefined;
  const reader = new ByteReader(bytes, recordHeaderBytes);
  return {
    endSequence: header.sequence,
    earliest: header.from,
    latest: header.to,
    lastWall: reader.f64(),
    lastUptime: reader.f64(),
  };
}

/**
 * Repairs a segment after a crash or a failed write. `header`: rewrites the header. `seal`: writes the missing seal
 * after the last intact record and truncates the file there. Returns the error of the disk, or undefined on success.
 * The segment is readable in either case.
 */
export function repairSegment(
  segment: Segment,
  disk: Disk,
  { header = false, seal = true }: { readonly header?: boolean; readonly seal?: boolean } = {},
): string | undefined {
  try {
    withFile(disk, segment.path, "write", (file) => {
      if (header) writeFully(file, writeSegmentHeader(segment.header), 0);
      // Sync the last write first: the previous process may have died before its sync. If a power cut left the seal but
      // not that write, the write would count as damage instead of as unfinished.
      if (seal) file.sync();
      const end = seal ? writeEnd(file, segment) : segment.bytes;
      file.sync();
      segment.bytes = end;
      segment.needsRepair = false;
    });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

function writeEnd(file: DiskFile, segment: Segment): number {
  const out = new ByteWriter(sealBytes);
  writeSeal(out, sealOf(segment), segment.header.salt);
  writeFully(file, out.written(), segment.bytes);
  file.setSize(segment.bytes + out.length);
  return segment.bytes + out.length;
}
