// The index of one segment: its records, dictionary and damaged ranges. Built by one scan of the file.
import { type InputId, isInputId } from "../../../core/point.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteReader } from "../files/bytes.ts";
import type { RecordHeader } from "./record.ts";
import { isKnown, isPayloadWhole, readRecordHeader, recordBytes, recordHeaderBytes, recordTypes } from "./record.ts";
import { segmentHeaderBytes } from "./segment-header.ts";

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
  let expected = options.first;
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
