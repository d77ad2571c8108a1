// Values of cold records, bit-exact. Similar bytes are collected in streams that are compressed separately.
//
// A column is a coding, followed by one vector per 1,024 values:
//
//   coding       u8       bits 0 to 3: decimals, 15 for raw doubles only; bit 4: differences; 32: a dictionary
//     dictionary varint   number of distinct values; then these as a column, and their places as another column
//   vector       u8       bytes per integer, each in a plane of its own, lowest first; 8: raw doubles in eight planes
//     integers   zigzag   the lowest integer; with differences, the first one, in the first vector of integers only
//                varint   exceptions; for each its place in the vector (varint), and a float64 in the last stream
//
// The streams of a record are its payload:
//
//   for each stream     varint length, varint compressed length (zstd); 0: stored uncompressed
//   streams             in the same order; the first one has the layout of `columns.ts`, without the values
//
// Integers are value × 10^decimals, minus the lowest one. Differences are zigzag-encoded. With differences, the upper
// word of a raw double is the zigzag difference from the previous upper word.
import { constants, zstdCompressSync } from "node:zlib";
import { ByteWriter, isExact, powers } from "../files/bytes.ts";

export const noDecimals = 15;
export const dictionaryCoding = 32;
export const vectorValues = 1_024;
/** With more exceptions, a vector is smaller as raw doubles. */
const maxExceptions = 160;
export const word = 2 ** 32;

export interface VectorCoding {
  readonly decimals: number;
  readonly differences: boolean;
}

export class DenseStreams {
  readonly head = new ByteWriter();
  readonly planes = Array.from({ length: 8 }, () => new ByteWriter());
  readonly rest = new ByteWriter();
  readonly all: readonly ByteWriter[] = [this.head, ...this.planes, this.rest];

  clear(): void {
    for (const stream of this.all) stream.cut();
  }
}

/** Number of streams of a record. */
export const streamCount = 10;

/** Writes the streams. One that compression does not shrink is stored uncompressed. */
export function writeStreams(out: ByteWriter, from: DenseStreams): void {
  const packed = from.all.map((stream) => {
    const bytes = stream.written();
    // A higher level pays for short streams, where it costs little.
    const params = { [constants.ZSTD_c_compressionLevel]: bytes.length < 16_384 ? 6 : 3 };
    const squeezed = bytes.length === 0 ? bytes : zstdCompressSync(bytes, { params });
    const pays = squeezed.length < bytes.length;
    out.varint(bytes.length);
    out.varint(pays ? squeezed.length : 0);
    return pays ? squeezed : bytes;
  });
  for (const bytes of packed) out.raw(bytes);
}

const scaled = new Float64Array(vectorValues);
const unsigned = new Float64Array(vectorValues);
const lows = new Uint32Array(vectorValues);
const highs = new Uint32Array(vectorValues);
const exceptions = new Uint32Array(maxExceptions + 1);

export function writeVectors(
  out: DenseStreams,
  values: Float64Array,
  start: number,
  end: number,
  { decimals, differences }: VectorCoding,
): void {
  out.head.u8(decimals + (differences ? 16 : 0));
  let before: number | undefined;
  let high = 0;
  for (let from = start; from < end; from += vectorValues) {
    const count = Math.min(vectorValues, end - from);
    const odd = decimals === noDecimals ? count : scale(values, from, count, decimals, before ?? 0);
    if (odd > maxExceptions || decimals === noDecimals) {
      out.head.u8(8);
      high = takeWords(values, from, count, differences ? high : undefined);
      writePlanes(out, lows, count, 0, 4);
      writePlanes(out, highs, count, 4, 8);
      continue;
    }
    const origin = differences ? (before ?? scaled[0]!) : lowest(count);
    const max = differences ? takeDifferences(count, origin) : takeOffsets(count, origin);
    const width = bytesOf(max);
    out.head.u8(width);
    if (!differences || before === undefined) out.head.zigzag(origin);
    before = scaled[count - 1]!;
    writePlanes(out, lows, count, 0, Math.min(width, 4));
    if (width > 4) {
      for (let i = 0; i < count; i++) highs[i] = unsigned[i]! / word;
      writePlanes(out, highs, count, 4, width);
    }
    out.head.varint(odd);
    for (let i = 0; i < odd; i++) {
      out.head.varint(exceptions[i]!);
      out.rest.f64(values[from + exceptions[i]!]!);
    }
  }
}

/**
 * Puts the scaled integers into `scaled`, repeating the previous one for exceptions. Returns the number of exceptions;
 * stops above `maxExceptions`.
 */
function scale(values: Float64Array, from: number, count: number, decimals: number, before: number): number {
  const power = powers[decimals]!;
  let last = before;
  let odd = 0;
  for (let i = 0; i < count; i++) {
    const value = values[from + i]!;
    if (isExact(value, power)) last = Math.round(value * power);
    else {
      if (odd > maxExceptions) return odd;
      exceptions[odd++] = i;
    }
    scaled[i] = last;
  }
  return odd;
}

function lowest(count: number): number {
  let min = scaled[0]!;
  for (let i = 1; i < count; i++) if (scaled[i]! < min) min = scaled[i]!;
  return min;
}

function takeOffsets(count: number, origin: number): number {
  let max = 0;
  for (let i = 0; i < count; i++) {
    const offset = scaled[i]! - origin;
    unsigned[i] = offset;
    // The conversion to 32 bits keeps the lower word.
    lows[i] = offset;
    if (offset > max) max = offset;
  }
  return max;
}

function takeDifferences(count: number, origin: number): number {
  let before = origin;
  let max = 0;
  for (let i = 0; i < count; i++) {
    const difference = scaled[i]! - before;
    before = scaled[i]!;
    const zigzag = difference < 0 ? -2 * difference - 1 : 2 * difference;
    unsigned[i] = zigzag;
    lows[i] = zigzag;
    if (zigzag > max) max = zigzag;
  }
  return max;
}

/** Puts the words of raw doubles into `lows` and `highs`. Returns the last upper word. */
function takeWords(values: Float64Array, from: number, count: number, before: number | undefined): number {
  const words = new Uint32Array(values.buffer, values.byteOffset + from * 8, count * 2);
  let high = before ?? 0;
  for (let i = 0; i < count; i++) {
    const next = words[2 * i + 1]!;
    const difference = (next - high) | 0;
    lows[i] = words[2 * i]!;
    highs[i] = before === undefined ? next : (difference << 1) ^ (difference >> 31);
    high = next;
  }
  return high;
}

function bytesOf(max: number): number {
  let bytes = 0;
  for (let rest = max; rest >= 1; rest /= 256) bytes++;
  return bytes;
}

function writePlanes({ planes }: DenseStreams, words: Uint32Array, count: number, first: number, end: number): void {
  for (let p = first; p < end; p++) {
    const bytes = planes[p]!.room(count);
    const shift = (p & 3) * 8;
    for (let i = 0; i < count; i++) bytes[i] = words[i]! >>> shift;
  }
}
