// The payload of a record of points: columns by series, grouped by series that share their times. Pure and bit-exact.
//
//   groups                         varint
//   for each group
//     points a series, and whether its times are raw    varint, 2 × points + raw
//     first time                   varint, from the record's `from`
//     first step                   varint, if there are two points
//     changes of the step          zigzag, one for each point from the third
//     or, raw                      float64 each, where times lie too far apart for exact differences
//     runs of series               varint; for each: gap to the run before it (varint), length (varint)
//     for each series
//       code                       u8: 0 to 9 decimals, 14 float32, 15 float64
//       values                     decimals: value × 10^code, the first and then differences, zigzag; else raw
//
// A series is identified by its place in the dictionary of the segment. Places ascend within a group.
//
// Cold records store the values in separate streams (`dense-values.ts`). The first one has the layout above.
//
//   for each stream              varint length, varint compressed length (zstd); 0: stored uncompressed
//   streams                      in the same order

import { zstdDecompressSync } from "node:zlib";
import { ByteReader, type ByteWriter } from "../files/bytes.ts";
import { writeDenseColumn } from "./dense-choice.ts";
import { ColumnBuffer, type DenseSource, readDenseColumn } from "./dense-reader.ts";
import { DenseStreams, isExact, maxScaled, powers } from "./dense-values.ts";
import { type RecordHeader, recordHeaderBytes } from "./record.ts";

const maxDecimals = 9;
const codeFloat32 = 14;
const codeFloat64 = 15;
/** Points sorted by series, then time. `starts` has one entry more than `series`. */
export interface SortedColumns {
  readonly series: Uint32Array;
  readonly starts: Uint32Array;
  readonly seriesCount: number;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/** Receives all points of a series in a record. Both columns have one entry per point, valid until it returns. */
export type SeriesVisitor = (series: number, times: Float64Array, values: Float64Array) => void;

type WriteValues = (values: Float64Array, start: number, end: number) => void;

/** Writes all points of `columns`. `from` is the earliest of their times. */
export function writeColumns(
  out: ByteWriter,
  columns: SortedColumns,
  from: number,
  write: WriteValues = (values, start, end) => writeValues(out, values, start, end),
): void {
  const { series, starts, seriesCount } = columns;
  const groupEnds: number[] = [];
  for (let i = 1; i <= seriesCount; i++) if (i === seriesCount || !sameTimes(columns, i - 1, i)) groupEnds.push(i);
  out.varint(groupEnds.length);
  let first = 0;
  for (const end of groupEnds) {
    writeTimes(out, columns.times, starts[first]!, starts[first + 1]!, from);
    writeRuns(out, series, first, end);
    for (let i = first; i < end; i++) write(columns.values, starts[i]!, starts[i + 1]!);
    first = end;
  }
}

function sameTimes({ starts, times }: SortedColumns, a: number, b: number): boolean {
  const startA = starts[a]!;
  const startB = starts[b]!;
  const count = starts[a + 1]! - startA;
  if (starts[b + 1]! - startB !== count) return false;
  for (let i = 0; i < count; i++) if (times[startA + i] !== times[startB + i]) return false;
  return true;
}

function writeTimes(out: ByteWriter, times: Float64Array, start: number, end: number, from: number): void {
  const count = end - start;
  const raw = times[end - 1]! - from >= maxScaled;
  out.varint(count * 2 + (raw ? 1 : 0));
  if (raw) {
    for (let i = start; i < end; i++) out.f64(times[i]!);
    return;
  }
  out.varint(times[start]! - from);
  if (count < 2) return;
  out.varint(times[start + 1]! - times[start]!);
  out.deltasOfDeltas(times, start, end);
}

function writeRuns(out: ByteWriter, series: Uint32Array, first: number, end: number): void {
  let runs = 1;
  for (let i = first + 1; i < end; i++) if (series[i] !== series[i - 1]! + 1) runs++;
  out.varint(runs);
  let next = 0;
  for (let i = first; i < end; ) {
    const start = i++;
    while (i < end && series[i] === series[i - 1]! + 1) i++;
    out.varint(series[start]! - next);
    out.varint(i - start);
    next = series[i - 1]! + 1;
  }
}

function writeValues(out: ByteWriter, values: Float64Array, start: number, end: number): void {
  const code = codeOf(values, start, end);
  out.u8(code);
  if (code === codeFloat64) for (let i = start; i < end; i++) out.f64(values[i]!);
  else if (code === codeFloat32) for (let i = start; i < end; i++) out.f32(values[i]!);
  else {
    const power = powers[code]!;
    let before = 0;
    for (let i = start; i < end; i++) {
      const scaled = Math.round(values[i]! * power);
      out.zigzag(scaled - before);
      before = scaled;
    }
  }
}

/** The smallest number of decimals that reproduces every value bit by bit, otherwise the shortest float that does. */
function codeOf(values: Float64Array, start: number, end: number): number {
  let decimals = 0;
  /** Values before this index were checked with fewer decimals only, which does not imply that they fit with more. */
  let toCheck = start;
  for (let i = start; i < end; i++) {
    const value = values[i]!;
    if (isExact(value, powers[decimals]!)) continue;
    do if (++decimals > maxDecimals) return floatCodeOf(values, start, end);
    while (!isExact(value, powers[decimals]!));
    toCheck = i;
  }
  const power = powers[decimals]!;
  for (let i = start; i < toCheck; i++) if (!isExact(values[i]!, power)) return floatCodeOf(values, start, end);
  return decimals;
}

function floatCodeOf(values: Float64Array, start: number, end: number): number {
  // NaN counts as float64: it has many bit patterns, and a conversion may change them.
  for (let i = start; i < end; i++) if (Math.fround(values[i]!) !== values[i]) return codeFloat64;
  return codeFloat32;
}

const streams = new DenseStreams();

/** Writes all points of `columns` as the payload of a cold record. */
export function writeDenseColumns(
  out: ByteWriter,
  columns: SortedColumns,
  from: number,
  compress: (stream: Uint8Array<ArrayBuffer>) => Uint8Array,
): void {
  streams.clear();
  writeColumns(streams.head, columns, from, (values, start, end) => writeDenseColumn(streams, values, start, end));
  writeStreams(out, streams, compress);
}

/** Writes the streams. A stream that `compress` does not shrink is stored uncompressed. */
export function writeStreams(
  out: ByteWriter,
  from: DenseStreams,
  compress: (stream: Uint8Array<ArrayBuffer>) => Uint8Array,
): void {
  const packed = from.all.map((stream) => {
    const bytes = stream.written();
    const squeezed = bytes.length === 0 ? bytes : compress(bytes);
    const pays = squeezed.length < bytes.length;
    out.varint(bytes.length);
    out.varint(pays ? squeezed.length : 0);
    return pays ? squeezed : bytes;
  });
  for (const bytes of packed) out.raw(bytes);
}

/** Reads `count` values, which stay valid until the next call. */
type ReadValues = (count: number) => Float64Array;

/** Reads the output of `writeColumns`. Throws `RangeError` for an invalid payload. */
export function readColumns(
  reader: ByteReader,
  from: number,
  visit: SeriesVisitor,
  read: ReadValues = (count) => readValues(reader, count),
): void {
  for (let groups = reader.varint(); groups > 0; groups--) {
    const times = readTimes(reader, from);
    for (const series of readRuns(reader)) visit(series, times, read(times.length));
  }
}

/** Reads the output of `writeDenseColumns`. Throws `RangeError`, or errors of zlib, for an invalid payload. */
export function readDenseColumns(payload: ByteReader, from: number, visit: SeriesVisitor): void {
  const source = readStreams(payload);
  readColumns(source.head, from, visit, (count) => readDenseColumn(source, count));
}

/** Reads the output of `writeStreams`. Throws as `readDenseColumns` does. */
export function readStreams(payload: ByteReader): DenseSource {
  const lengths = streams.all.map(() => [payload.varint(), payload.varint()] as const);
  if (lengths.reduce((sum, [length]) => sum + length, 0) > maxOutputLength)
    throw new RangeError("longer than a record");
  const [head, ...others] = lengths.map(([length, squeezed]) => {
    const bytes = payload.raw(squeezed === 0 ? length : squeezed);
    if (squeezed === 0) return new ByteReader(bytes);
    // One output buffer that is never full, so that its parts need not be joined.
    const chunkSize = Math.max(minChunk, length + 1);
    return new ByteReader(zstdDecompressSync(bytes, { maxOutputLength: length, chunkSize }));
  });
  const rest = others.pop()!;
  return { head: head!, planes: others, rest };
}

function readRuns(reader: ByteReader): number[] {
  const series: number[] = [];
  let next = 0;
  for (let runs = reader.varint(); runs > 0; runs--) {
    next += reader.varint();
    const length = reader.varint();
    // Each series takes at least one byte. A greater count is damage; check it before memory is allocated.
    if (length > reader.left) throw new RangeError("more series than bytes");
    for (const end = next + length; next < end; next++) series.push(next);
  }
  return series;
}

const timesBuffer = new ColumnBuffer();
const valuesBuffer = new ColumnBuffer();

function readTimes(reader: ByteReader, from: number): Float64Array {
  const head = reader.varint();
  const count = Math.floor(head / 2);
  // Each point takes at least one byte. A greater count is damage; check it before memory is allocated.
  if (count < 1 || count > reader.left) throw new RangeError("more points than bytes");
  const times = timesBuffer.column(count);
  if (head % 2 === 1) {
    for (let i = 0; i < count; i++) times[i] = reader.f64();
    return times;
  }
  times[0] = from + reader.varint();
  if (count > 1) times[1] = times[0] + reader.varint();
  reader.deltasOfDeltas(times);
  return times;
}

function readValues(reader: ByteReader, count: number): Float64Array {
  const code = reader.u8();
  const values = valuesBuffer.column(count);
  if (code === codeFloat64) for (let i = 0; i < count; i++) values[i] = reader.f64();
  else if (code === codeFloat32) for (let i = 0; i < count; i++) values[i] = reader.f32();
  else if (code <= maxDecimals) {
    const power = powers[code]!;
    let scaled = 0;
    for (let i = 0; i < count; i++) {
      scaled += reader.zigzag();
      values[i] = scaled / power;
    }
  } else throw new RangeError(`unknown code ${code} of values`);
  return values;
}

/** Maximum bytes of a decompressed record: a point takes less than 24 bytes. */
const maxOutputLength = 2 ** 21;
/** Node refuses smaller output buffers. */
const minChunk = 64;

/**
 * Calls `visit` for each series of the record at `at`, whose checksum is valid. Payload versions: 1 hot records, 3 cold
 * records, 2 older cold records, compressed as a whole.
 */
export function readPoints(bytes: Uint8Array, at: number, header: RecordHeader, visit: SeriesVisitor): void {
  const start = at + recordHeaderBytes;
  const end = start + header.length;
  if (header.version === 3) readDenseColumns(new ByteReader(bytes, start, end), header.from, visit);
  else if (header.version === 1) readColumns(new ByteReader(bytes, start, end), header.from, visit);
  else {
    const columns = zstdDecompressSync(bytes.subarray(start, end), { maxOutputLength });
    readColumns(new ByteReader(columns), header.from, visit);
  }
}
