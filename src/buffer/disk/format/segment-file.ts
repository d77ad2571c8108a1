// The file of a segment: its name, the index of its records, and its first 4 KiB:
//
//     0  magic        8     "TFSEG\r\n\x1a"
//     8  major, minor u8×2  of the format: 2, 0; another major is refused
//    10  kind         u8    0 hot (records as appended), 1 cold (rewritten by series)
//    11  checksum     u8    2: CRC-32
//    12  salt         u32   random; every record repeats it
//    16  stream       16    UUID of the buffer
//    32  first        f64   sequence number of the first point
//    40  created      f64   wall time, microseconds
//    48  generation   u32   how often the segment was rewritten
//    52  integration  u16 length, then text (at most 255 bytes)
//  4092  CRC          u32   over all bytes before

import { type InputId, isInputId } from "../../../core/point.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteReader, crc32, crc32Text } from "../files/bytes.ts";
import { type Disk, readFile, replaceFile } from "../files/disk.ts";
import {
  isKnown,
  isPayloadWhole,
  type RecordHeader,
  readRecordHeader,
  recordBytes,
  recordHeaderBytes,
  recordTypes,
} from "./record.ts";

export const segmentHeaderBytes = 4_096;
const formatMajor = 2;
const formatMinor = 0;
const magic = Uint8Array.from([0x54, 0x46, 0x53, 0x45, 0x47, 0x0d, 0x0a, 0x1a]);

export interface SegmentHeader {
  readonly kind: "hot" | "cold";
  readonly salt: number;
  /** 32 hexadecimal digits. */
  readonly stream: string;
  readonly first: number;
  readonly created: number;
  readonly generation: number;
  readonly integration: string;
}

export function writeSegmentHeader(header: SegmentHeader): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(segmentHeaderBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(magic);
  bytes[8] = formatMajor;
  bytes[9] = formatMinor;
  bytes[10] = header.kind === "cold" ? 1 : 0;
  bytes[11] = 2;
  view.setUint32(12, header.salt, true);
  bytes.set(Buffer.from(header.stream, "hex").subarray(0, 16), 16);
  view.setFloat64(32, header.first, true);
  view.setFloat64(40, header.created, true);
  view.setUint32(48, header.generation, true);
  const integration = new TextEncoder().encode(header.integration).subarray(0, 255);
  view.setUint16(52, integration.length, true);
  bytes.set(integration, 54);
  view.setUint32(4_092, crc32(bytes, 0, 4_092), true);
  return bytes;
}

/** The header, or `damaged`; `newer` or `older` if only such a version of the program can read the segment. */
export function readSegmentHeader(bytes: Uint8Array): SegmentHeader | "damaged" | "newer" | "older" {
  if (bytes.length < segmentHeaderBytes || magic.some((byte, i) => bytes[i] !== byte)) return "damaged";
  // Checked before the checksum, which older versions computed differently. No format had the number 0.
  if (bytes[8]! > 0 && bytes[8]! < formatMajor) return "older";
  const view = new DataView(bytes.buffer, bytes.byteOffset, segmentHeaderBytes);
  if (view.getUint32(4_092, true) !== crc32(bytes, 0, 4_092)) return "damaged";
  if (bytes[8]! > formatMajor) return "newer";
  return {
    kind: bytes[10] === 1 ? "cold" : "hot",
    salt: view.getUint32(12, true),
    stream: Buffer.from(bytes.subarray(16, 32)).toString("hex"),
    first: view.getFloat64(32, true),
    created: view.getFloat64(40, true),
    generation: view.getUint32(48, true),
    integration: new TextDecoder().decode(bytes.subarray(54, 54 + Math.min(255, view.getUint16(52, true)))),
  };
}

/** `seg-0000000000001234.log`. Further segments at the same position get a suffix: `-1`, `-2`. */
export function segmentName(first: number, attempt: number): string {
  const name = `seg-${String(first).padStart(16, "0")}`;
  return attempt === 0 ? `${name}.log` : `${name}-${attempt}.log`;
}

export function parseSegmentName(name: string): { readonly first: number; readonly attempt: number } | undefined {
  const match = /^seg-(\d{16})(?:-(\d{1,6}))?\.log$/.exec(name);
  const first = Number(match?.[1]);
  // Sequence numbers above 2^53 are not exact.
  return match && Number.isSafeInteger(first) ? { first, attempt: Number(match[2] ?? 0) } : undefined;
}

// `FORMAT`: one line with the version of the format and the UUID of the buffer.

export const formatFileName = "FORMAT";
export type FormatFile = { readonly stream: string } | "missing" | "damaged" | "newer" | "older";

/**
 * The buffer's UUID as 32 hexadecimal digits, or `missing` or `damaged`; `newer` or `older` if only such a version can
 * read the folder. An `older` file may also be damaged: its checksum has another kind and is not verified.
 */
export function readFormatFile(disk: Disk, folder: string): FormatFile {
  if (!disk.list(folder).includes(formatFileName)) return "missing";
  const text = new TextDecoder("latin1").decode(readFile(disk, `${folder}/${formatFileName}`));
  const match = /^(tagferry buffer (\d{1,6}) ([0-9a-f]{32}|\S*)) ([0-9a-f]{8})\n$/.exec(text);
  if (match && Number(match[2]) < formatMajor) return "older";
  if (!match || match[4] !== crc32Text(match[1] ?? "")) return "damaged";
  if (Number(match[2]) > formatMajor) return "newer";
  return { stream: match[3] ?? "" };
}

export function writeFormatFile(disk: Disk, folder: string, stream: string): void {
  const line = `tagferry buffer ${formatMajor} ${stream}`;
  replaceFile(disk, folder, formatFileName, new TextEncoder().encode(`${line} ${crc32Text(line)}\n`));
}

// The index: records, dictionary and damaged ranges. Built by one scan of the file.

const maxInputs = 2 ** 24;

/** Points of the segment that have become unreadable. */
export interface Damage {
  /** Sequence numbers, half open. If equal, the damaged bytes held no points. */
  readonly from: number;
  readonly to: number;
  /** Times of the points, if an intact header has them. */
  readonly earliest: number | undefined;
  readonly latest: number | undefined;
  readonly offset: number;
  readonly bytes: number;
}

type IndexedRecord = Pick<RecordHeader, "sequence" | "points" | "from" | "to" | "late">;

/** Records of points in columns, in the order of the file. */
export class SegmentIndex {
  readonly offsets: number[] = [];
  readonly sequences: number[] = [];
  readonly points: number[] = [];
  readonly earliest: number[] = [];
  readonly latest: number[] = [];
  readonly late: boolean[] = [];
  /** Input IDs by place. Undefined: every copy of the entry is damaged. */
  readonly dictionary: (InputId | undefined)[] = [];
  readonly damage: Damage[] = [];
  /** End of the last intact record, in bytes. */
  endOffset = segmentHeaderBytes;
  endSequence: number;
  /** Unsealed segment: bytes after the last intact record, up to the last nonzero one, of an interrupted write. */
  tornBytes = 0;
  sealed = false;
  /** Salt of the records. Undefined: not known yet. */
  salt: number | undefined;

  constructor(first: number, salt: number | undefined) {
    this.endSequence = first;
    this.salt = salt;
  }

  rangeOf(record: number): [from: number, to: number] {
    const from = this.sequences[record]!;
    return [from, from + this.points[record]!];
  }

  get earliestTime(): number | undefined {
    return this.earliest.length === 0 ? undefined : this.earliest.reduce((a, b) => Math.min(a, b));
  }

  get latestTime(): number | undefined {
    return this.latest.length === 0 ? undefined : this.latest.reduce((a, b) => Math.max(a, b));
  }

  add(offset: number, header: IndexedRecord): void {
    this.offsets.push(offset);
    this.sequences.push(header.sequence);
    this.points.push(header.points);
    this.earliest.push(header.from);
    this.latest.push(header.to);
    this.late.push(header.late);
    this.endSequence = header.sequence + header.points;
  }

  /** Removes records and damage from `offset` on. */
  cut(offset: number, first: number): void {
    while ((this.offsets.at(-1) ?? -1) >= offset)
      for (const column of [this.offsets, this.sequences, this.points, this.earliest, this.latest, this.late])
        column.pop();
    while ((this.damage.at(-1)?.offset ?? -1) >= offset) this.damage.pop();
    const lastRecord = (this.sequences.at(-1) ?? first) + (this.points.at(-1) ?? 0);
    this.endSequence = Math.max(lastRecord, this.damage.at(-1)?.to ?? first);
    this.endOffset = offset;
  }
}

export interface ScanOptions {
  readonly first: number;
  /** Undefined: the segment's header is damaged; the first intact record supplies the salt. */
  readonly salt: number | undefined;
  /** First sequence number of the next segment. Records beyond it are left from a failed write and are ignored. */
  readonly limit: number;
  /** End of the segment's sequence numbers. Undefined: unknown. */
  readonly end: number | undefined;
  /** All points before this sequence number were durable. */
  readonly durable: number;
}

/** Scans a whole segment. Never throws because of its content. */
export function scanSegment(bytes: Uint8Array, options: ScanOptions): SegmentIndex {
  const { limit } = options;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const index = new SegmentIndex(options.first, options.salt);
  let expected = index.endSequence;
  /** Start of unreadable bytes: damage if another record follows, otherwise a torn tail. */
  let bad: { readonly offset: number; readonly header: RecordHeader | undefined } | undefined;
  let at = segmentHeaderBytes;
  /** Start of the write that contained the last intact header. */
  let lastGroup = at;

  const damaged = (to: number, offset: number, end: number, header: RecordHeader | undefined) => {
    const exact =
      header?.type === recordTypes.points && header.sequence === expected && expected + header.points === to;
    index.damage.push({
      from: expected,
      to: Math.max(to, expected),
      earliest: exact ? header.from : undefined,
      latest: exact ? header.to : undefined,
      offset,
      bytes: end - offset,
    });
    expected = Math.max(to, expected);
  };

  while (at + recordHeaderBytes <= bytes.length) {
    const header = readRecordHeader(bytes, view, at, index.salt);
    if (!header) {
      bad ??= { offset: at, header: undefined };
      at += 8;
      continue;
    }
    if (header.sequence > limit || (header.sequence === limit && header.points > 0)) break;
    lastGroup = at - header.groupOffset;
    if (!isPayloadWhole(bytes, at, header) || (!isKnown(header) && !header.optional)) {
      // Two bad records in sequence: the intact header of the second proves that the first is damage.
      if (bad) damaged(header.sequence, bad.offset, at, bad.header);
      bad = { offset: at, header };
      // The header's own checksum guarantees the length.
      at += recordBytes(header.length);
      continue;
    }
    if (bad) damaged(header.sequence, bad.offset, at, bad.header);
    else if (header.sequence > expected) damaged(header.sequence, at, at, undefined);
    bad = undefined;
    index.salt ??= header.salt;
    const end = at + recordBytes(header.length);
    if (header.type === recordTypes.seal) {
      index.sealed = true;
      index.endOffset = end;
      break;
    }
    if (header.type === recordTypes.dictionary) readDictionary(bytes, at, header, index);
    else if (header.type === recordTypes.points && header.sequence >= expected) {
      index.add(at, header);
      expected = index.endSequence;
    }
    index.endOffset = end;
    at = end;
  }
  if (options.end !== undefined) {
    if (options.end > expected) damaged(options.end, bad?.offset ?? index.endOffset, bytes.length, bad?.header);
  } else if (!index.sealed) {
    if (index.damage.some(({ offset, to }) => offset >= lastGroup && to > options.durable)) {
      // A power cut may leave holes in the last write. None of it was acknowledged, so all of it is removed.
      index.cut(lastGroup, options.first);
      expected = index.endSequence;
    }
    for (let i = index.endOffset; i < bytes.length; i++) if (bytes[i] !== 0) index.tornBytes = i + 1 - index.endOffset;
  }
  index.endSequence = Math.max(expected, options.end ?? expected);
  return index;
}

function readDictionary(bytes: Uint8Array, at: number, header: RecordHeader, index: SegmentIndex): void {
  const start = at + recordHeaderBytes;
  const reader = new ByteReader(bytes, start, start + header.length);
  // Skip unreadable names: each has another copy.
  attempt(() => {
    const first = reader.varint();
    const count = reader.varint();
    if (first > maxInputs) return;
    while (index.dictionary.length < first) index.dictionary.push(undefined);
    for (let i = 0; i < count; i++) {
      const name = reader.text();
      index.dictionary[first + i] = isInputId(name) ? name : undefined;
    }
  });
}
