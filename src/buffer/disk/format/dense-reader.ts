// Reads columns in the format of `dense-values.ts`.
import { zstdDecompressSync } from "node:zlib";
import { ByteReader, powers } from "../files/bytes.ts";
import { ColumnBuffer, readColumns, type SeriesVisitor } from "./columns.ts";
import { dictionaryCoding, noDecimals, streamCount, vectorValues, word } from "./dense-values.ts";

const lows = new Uint32Array(vectorValues);
const highs = new Uint32Array(vectorValues);

interface DenseSource {
  readonly head: ByteReader;
  readonly planes: readonly ByteReader[];
  readonly rest: ByteReader;
}

/** Maximum bytes of a decompressed record: a point takes less than 24 bytes. */
const maxOutputLength = 2 ** 21;
/** Node refuses smaller output buffers. */
const minChunk = 64;

/** Reads the output of `writeDenseColumns`. Throws `RangeError`, or errors of zlib, for an invalid payload. */
export function readDenseColumns(payload: ByteReader, from: number, visit: SeriesVisitor): void {
  const source = readStreams(payload);
  readColumns(source.head, from, visit, (count) => readDenseColumn(source, count));
}

/** Reads the output of `writeStreams`. Throws as `readDenseColumns` does. */
export function readStreams(payload: ByteReader): DenseSource {
  const lengths = Array.from({ length: streamCount }, () => [payload.varint(), payload.varint()] as const);
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

const valuesBuffer = new ColumnBuffer();
const differentBuffer = new ColumnBuffer();

/** Reads `count` values into a column that the next call reuses. Throws `RangeError` if invalid. */
export function readDenseColumn(source: DenseSource, count: number): Float64Array {
  const coding = source.head.u8();
  const values = valuesBuffer.column(count);
  if (coding !== dictionaryCoding) return readVectors(source, coding, values, count);
  const size = source.head.varint();
  if (size > count) throw new RangeError("more different values than values");
  const different = differentBuffer.column(size);
  readVectors(source, source.head.u8(), different, size);
  return lookUp(readVectors(source, source.head.u8(), values, count), count, different, size);
}

/** Replaces the first `count` of `places` by the values at them. */
function lookUp(places: Float64Array, count: number, different: Float64Array, size: number): Float64Array {
  for (let i = 0; i < count; i++) {
    const place = places[i]! >>> 0;
    if (place >= size) throw new RangeError("a place outside of the dictionary");
    places[i] = different[place]!;
  }
  return places;
}

function readVectors(source: DenseSource, coding: number, into: Float64Array, total: number): Float64Array {
  const { head, rest } = source;
  const decimals = coding & 15;
  const differences = (coding & 16) !== 0;
  if (coding > 31) throw new RangeError(`unknown coding ${coding} of values`);
  const power = powers[decimals] ?? 1;
  let before: number | undefined;
  let high = 0;
  for (let from = 0; from < total; from += vectorValues) {
    const count = Math.min(vectorValues, total - from);
    const width = head.u8();
    if (width === 8) {
      high = readRaw(source, into, from, count, differences ? high : undefined);
      continue;
    }
    if (width > 8 || decimals === noDecimals) throw new RangeError(`unknown width ${width} of integers`);
    const origin = !differences || before === undefined ? head.zigzag() : before;
    readWords(source, count, 0, Math.min(width, 4), lows);
    let undo = differences ? undoDifferences : undoOffsets;
    if (width > 4) {
      readWords(source, count, 4, width, highs);
      undo = differences ? undoLongDifferences : undoLongOffsets;
    }
    before = undo(into, from, count, origin, power);
    for (let odd = head.varint(); odd > 0; odd--) {
      const place = head.varint();
      if (place >= count) throw new RangeError("an exception outside of its vector");
      into[from + place] = rest.f64();
    }
  }
  return into;
}

function undoDifferences(values: Float64Array, from: number, count: number, origin: number, power: number): number {
  let last = origin;
  for (let i = 0; i < count; i++) {
    const zigzag = lows[i]!;
    last += (zigzag >>> 1) ^ -(zigzag & 1);
    values[from + i] = last / power;
  }
  return last;
}

function undoLongDifferences(values: Float64Array, from: number, count: number, origin: number, power: number): number {
  let last = origin;
  for (let i = 0; i < count; i++) {
    const zigzag = highs[i]! * word + lows[i]!;
    last += (lows[i]! & 1) === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    values[from + i] = last / power;
  }
  return last;
}

function undoOffsets(values: Float64Array, from: number, count: number, origin: number, power: number): number {
  for (let i = 0; i < count; i++) values[from + i] = (origin + lows[i]!) / power;
  return origin;
}

function undoLongOffsets(values: Float64Array, from: number, count: number, origin: number, power: number): number {
  for (let i = 0; i < count; i++) values[from + i] = (origin + highs[i]! * word + lows[i]!) / power;
  return origin;
}

function readRaw(
  source: DenseSource,
  values: Float64Array,
  from: number,
  count: number,
  before: number | undefined,
): number {
  readWords(source, count, 0, 4, lows);
  readWords(source, count, 4, 8, highs);
  const words = new Uint32Array(values.buffer, values.byteOffset + from * 8, count * 2);
  let high = before ?? 0;
  for (let i = 0; i < count; i++) {
    const zigzag = highs[i]!;
    high = before === undefined ? zigzag : (high + ((zigzag >>> 1) ^ -(zigzag & 1))) >>> 0;
    words[2 * i] = lows[i]!;
    words[2 * i + 1] = high;
  }
  return high;
}

/** Reads the lower or upper words of `count` integers from up to four planes, all of them in one pass. */
function readWords({ planes }: DenseSource, count: number, first: number, end: number, words: Uint32Array): void {
  const [a, b, c, d] = planes.slice(first, end).map((plane) => plane.raw(count));
  if (!a) words.fill(0, 0, count);
  else if (!b) words.set(a);
  else if (!c) for (let i = 0; i < count; i++) words[i] = a[i]! | (b[i]! << 8);
  else if (!d) for (let i = 0; i < count; i++) words[i] = a[i]! | (b[i]! << 8) | (c[i]! << 16);
  else for (let i = 0; i < count; i++) words[i] = a[i]! | (b[i]! << 8) | (c[i]! << 16) | (d[i]! << 24);
}
