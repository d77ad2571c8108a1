// The frame of every record in a segment. Its header has a checksum of its own, so that a damaged payload costs one
// record and the following ones remain readable.
//
//    0  marker        u32   finds the next record after damage; records begin at multiples of 8
//    4  type          u8    1 points, 2 seal, 3 dictionary
//    5  flags         u8    bit 0: optional, a reader that does not know the type may skip it
//                           bit 1: late, its points may replace points stored before
//    6  version       u16   of the payload's layout: 1; points of cold segments 3, compressed with zstd
//    8  length        u32   of the payload, without its padding of zeros to a multiple of 8
//   12  points        u32   how many points are lost if the payload is damaged
//   16  sequence      f64   number of the first point since the buffer was created; gaps reveal missing points
//   24  from, to      f64   earliest and latest time in it, microseconds
//   40  salt          u32   salt of the segment, so that records of another file are not accepted
//   44  payload CRC   u32   over the payload and its padding
//   48  group offset  u32   offset of this record in the write that it was a part of
//   52  header CRC    u32   over bytes 0 to 51
import type { InputId } from "../../../core/point.ts";
import { ByteReader, type ByteWriter, copied, crc32 } from "../files/bytes.ts";
import { readColumns, type SeriesSorter, type SeriesVisitor, writeColumns } from "./columns.ts";
import { writeDenseColumns } from "./dense-choice.ts";
import { readDenseColumns } from "./dense-reader.ts";
import type { InputTable, PointColumns } from "./input-table.ts";

export const recordHeaderBytes = 56;
export const recordTypes = { points: 1, seal: 2, dictionary: 3 } as const;
/** A greater length is damage. */
export const maxPayloadBytes = 2 ** 20;

const lateFlag = 2;
const marker = 0x1a_52_46_54; // "TFR\x1a"

export interface RecordHeader {
  readonly type: number;
  readonly optional: boolean;
  readonly late: boolean;
  readonly version: number;
  readonly length: number;
  readonly points: number;
  readonly sequence: number;
  readonly from: number;
  readonly to: number;
  readonly salt: number;
  readonly groupOffset: number;
  readonly payloadChecksum: number;
}

interface RecordFields extends Pick<RecordHeader, "type" | "points" | "sequence" | "from" | "to" | "salt"> {
  readonly late?: boolean;
}

/** Size of a record with a payload of `length` bytes. */
export function recordBytes(length: number): number {
  return recordHeaderBytes + padded(length);
}

const padded = (length: number) => Math.ceil(length / 8) * 8;

/** Appends a record to `out`, which holds one write. `payload` writes the payload and returns its version. */
export function writeRecord(out: ByteWriter, fields: RecordFields, payload: (out: ByteWriter) => number): void {
  const at = out.skip(recordHeaderBytes);
  const start = at + recordHeaderBytes;
  const version = payload(out);
  const length = out.length - start;
  out.skip(padded(length) - length);
  const bytes = out.written();
  const view = new DataView(bytes.buffer, at, recordHeaderBytes);
  view.setUint32(0, marker, true);
  view.setUint8(4, fields.type);
  if (fields.late) view.setUint8(5, lateFlag);
  view.setUint16(6, version, true);
  view.setUint32(8, length, true);
  view.setUint32(12, fields.points, true);
  view.setFloat64(16, fields.sequence, true);
  view.setFloat64(24, fields.from, true);
  view.setFloat64(32, fields.to, true);
  view.setUint32(40, fields.salt, true);
  view.setUint32(44, crc32(bytes, start, out.length), true);
  view.setUint32(48, at, true);
  view.setUint32(52, crc32(bytes, at, at + 52), true);
}

/** The header at `at`, or undefined if it is not intact. `salt` undefined: accepts any. */
export function readRecordHeader(
  bytes: Uint8Array,
  view: DataView,
  at: number,
  salt: number | undefined,
): RecordHeader | undefined {
  if (at + recordHeaderBytes > bytes.length || view.getUint32(at, true) !== marker) return undefined;
  const echo = view.getUint32(at + 40, true);
  if (salt !== undefined && echo !== salt) return undefined;
  if (view.getUint32(at + 52, true) !== crc32(bytes, at, at + 52)) return undefined;
  const length = view.getUint32(at + 8, true);
  if (length > maxPayloadBytes) return undefined;
  return {
    type: view.getUint8(at + 4),
    optional: (view.getUint8(at + 5) & 1) === 1,
    late: (view.getUint8(at + 5) & lateFlag) !== 0,
    version: view.getUint16(at + 6, true),
    length,
    points: view.getUint32(at + 12, true),
    sequence: view.getFloat64(at + 16, true),
    from: view.getFloat64(at + 24, true),
    to: view.getFloat64(at + 32, true),
    salt: echo,
    groupOffset: view.getUint32(at + 48, true),
    payloadChecksum: view.getUint32(at + 44, true),
  };
}

export function isPayloadWhole(bytes: Uint8Array, at: number, header: RecordHeader): boolean {
  const start = at + recordHeaderBytes;
  const end = start + padded(header.length);
  return end <= bytes.length && crc32(bytes, start, end) === header.payloadChecksum;
}

export function isKnown(header: RecordHeader): boolean {
  return header.version === 1 ? header.type >= 1 && header.type <= 3 : header.version === 3 && header.type === 1;
}

/** Calls `visit` for each series of the record at `at`, whose checksum is valid and whose version is known. */
export function readPoints(bytes: Uint8Array, at: number, header: RecordHeader, visit: SeriesVisitor): void {
  const start = at + recordHeaderBytes;
  const payload = new ByteReader(bytes, start, start + header.length);
  if (header.version === 3) readDenseColumns(payload, header.from, visit);
  else readColumns(payload, header.from, visit);
}

// Encodes points as records of one segment, together with the Input IDs that they need. A new Input ID is written
// before and after the first record that uses it, and once more when the segment is sealed. So no single damaged place
// makes other records unreadable.

const maxDictionaryBytes = 128 * 1_024;

export interface EncodedRecord extends Pick<RecordHeader, "sequence" | "points" | "from" | "to" | "late"> {
  readonly offset: number;
  /** Size of the padded payload. Above `maxPayloadBytes` it could not be read. */
  readonly bytes: number;
}

type EncodedPart = Pick<RecordHeader, "from" | "to" | "late">;

/** Memory that all segments of a buffer share. */
export interface Scratch {
  readonly sorter: SeriesSorter;
  readonly out: ByteWriter;
}

export interface EncoderOptions {
  readonly salt: number;
  /** Records are compressed, by the smallest coding. */
  readonly isCold?: boolean;
}

export class SegmentEncoder {
  /** Input IDs by place in the dictionary. */
  readonly names: InputId[] = [];
  readonly out: ByteWriter;
  readonly #options: EncoderOptions;
  readonly #sorter: SeriesSorter;
  /** By input number: place in the dictionary plus one; 0: not in it. */
  #places = new Uint32Array(64);
  #ids = new Uint32Array(256);

  constructor(options: EncoderOptions, scratch: Scratch) {
    this.#options = options;
    this.#sorter = scratch.sorter;
    this.out = scratch.out;
  }

  /** Writes the points as one record with the first sequence number `sequence`. */
  encode(points: PointColumns, { from, to, late }: EncodedPart, sequence: number, inputs: InputTable): EncodedRecord {
    const known = this.names.length;
    const ids = this.#idsOf(points, from, to, inputs);
    let earliest = Number.POSITIVE_INFINITY;
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const time = points.times[i]!;
      if (time < earliest) earliest = time;
      if (time > latest) latest = time;
    }
    const columns = this.#sorter.sort(ids, points.times, points.values, from, to);
    this.writeDictionary(known, sequence);
    const offset = this.out.length;
    const { salt, isCold } = this.#options;
    const fields = { sequence, points: to - from, from: earliest, to: latest, late };
    const payload = (out: ByteWriter) => {
      if (isCold) writeDenseColumns(out, columns, earliest);
      else writeColumns(out, columns, earliest);
      return isCold ? 3 : 1;
    };
    writeRecord(this.out, { ...fields, type: recordTypes.points, salt }, payload);
    const bytes = this.out.length - offset - recordHeaderBytes;
    this.writeDictionary(known, sequence + to - from);
    return { ...fields, offset, bytes };
  }

  /** Removes the names from place `known` on, because they were not written. */
  forget(known: number, inputs: InputTable): void {
    for (const name of this.names.splice(known)) this.#places[inputs.numberOf(name)] = 0;
  }

  writeDictionary(first: number, sequence: number): void {
    const { salt } = this.#options;
    for (let at = first; at < this.names.length; ) {
      let end = at;
      for (let bytes = 0; end < this.names.length && bytes < maxDictionaryBytes; end++)
        bytes += this.names[end]!.length + 2;
      const names = this.names.slice(at, end);
      const start = at;
      const fields = { type: recordTypes.dictionary, points: 0, sequence, from: 0, to: 0, salt };
      const payload = (out: ByteWriter) => {
        out.varint(start);
        out.varint(names.length);
        for (const name of names) out.text(name);
        return 1;
      };
      writeRecord(this.out, fields, payload);
      at = end;
    }
  }

  #idsOf(points: PointColumns, from: number, to: number, inputs: InputTable): Uint32Array {
    if (this.#ids.length < to) this.#ids = new Uint32Array(2 ** Math.ceil(Math.log2(to)));
    if (this.#places.length < inputs.size)
      this.#places = copied(this.#places, new Uint32Array(2 ** Math.ceil(Math.log2(inputs.size))));
    for (let i = from; i < to; i++) {
      const input = points.inputs[i]!;
      if (this.#places[input] === 0) {
        this.names.push(inputs.inputAt(input));
        this.#places[input] = this.names.length;
      }
      this.#ids[i] = this.#places[input]! - 1;
    }
    return this.#ids;
  }
}
