// Reads columns in the format of `dense-values.ts`.
import type { ByteReader } from "../files/bytes.ts";
import { dictionaryCoding, noDecimals, vectorValues, word } from "./dense-values.ts";
import { powers } from "./scaled.ts";

const lows = new Uint32Array(vectorValues);
const highs = new Uint32Array(vectorValues);

export interface DenseSource {
  readonly head: ByteReader;
  readonly planes: readonly ByteReader[];
  readonly rest: ByteReader;
}

let values = new Float64Array(vectorValues);

/** Reads `count` values into a longer buffer that the next call reuses. Throws `RangeError` if invalid. */
export function readDenseColumn(source: DenseSource, count: number): Float64Array {
  const coding = source.head.u8();
  if (values.length < count) values = new Float64Array(count);
  if (coding !== dictionaryCoding) return readVectors(source, coding, values, count);
  const size = source.head.varint();
  if (size > count) throw new RangeError("more different values than values");
  const different = readVectors(source, source.head.u8(), new Float64Array(size), size);
  const places = readVectors(source, source.head.u8(), values, count);
  for (let i = 0; i < count; i++) {
    const place = places[i]!;
    if (!(place < size)) throw new RangeError("a place outside of the dictionary");
    values[i] = different[place]!;
  }
  return values;
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
    if (width > 4) readWords(source, count, 4, width, highs);
    else highs.fill(0, 0, count);
    before = differences
      ? undoDifferences(into, from, count, origin, power)
      : undoOffsets(into, from, count, origin, power);
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
    const low = lows[i]!;
    const high = highs[i]!;
    if (high === 0) last += (low >>> 1) ^ -(low & 1);
    else {
      const zigzag = high * word + low;
      last += (low & 1) === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    }
    values[from + i] = last / power;
  }
  return last;
}

function undoOffsets(values: Float64Array, from: number, count: number, origin: number, power: number): number {
  let last = origin;
  for (let i = 0; i < count; i++) {
    last = origin + highs[i]! * word + lows[i]!;
    values[from + i] = last / power;
  }
  return last;
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

function readWords({ planes }: DenseSource, count: number, first: number, end: number, words: Uint32Array): void {
  if (first === end) return void words.fill(0, 0, count);
  for (let p = first; p < end; p++) {
    const bytes = planes[p]!.raw(count);
    const shift = (p & 3) * 8;
    if (p === first) for (let i = 0; i < count; i++) words[i] = bytes[i]!;
    else for (let i = 0; i < count; i++) words[i]! |= bytes[i]! << shift;
  }
}
