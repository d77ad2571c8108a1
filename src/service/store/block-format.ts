// Format of a block: up to 1,024 points of one signal by ascending time. Little-endian, bit-exact.
//
//   0  u8   form: 3
//   1  u8   code of the values: 0 to 9 decimals, 14 float32, 15 float64; plus 16 if they are differences
//   2  u8   bytes of a gap: 0, 1, 2, 4, or 8 for float64
//   3  u8   bytes of a value: 0, 1, 2 or 4 for integers, 4 or 8 for floats
//   4  u32  count
//   8  f64  first time, µs since the epoch
//  16  f64  lowest gap between two times, µs
//  24  f64  unit in which gaps exceed the lowest one, µs
//  32  f64  integer before the first difference
//  40  f64  lowest integer, or difference
//  48       gaps: count − 1, (gap − lowest gap) ÷ unit; padded to 8 bytes
//   …       values: count; floats, or value × 10^decimals or its difference to the previous one, minus the lowest
//
// On an even grid, a point takes 1 to 2 bytes for values with few decimals, 4 for float32, otherwise 8. Layout 1 wrote
// forms 0 to 2, which can still be read; rewritten blocks get form 3.
import type { BlockColumns } from "./point-block.ts";

const maxBlockPoints = 1_024;
const headerBytes = 48;
const form = 3;
const codeFloat32 = 14;
const codeFloat64 = 15;
const differencesFlag = 16;
const powers = Float64Array.from({ length: 10 }, (_, n) => 10 ** n);
/** The differences of two such integers are exact. */
const maxInteger = 2 ** 50;
/** Device clocks have resolutions of seconds, milliseconds or microseconds. */
const gapUnits = [1e6, 1e3];

/** Integers from `lowest` in steps of `unit`, with `width` bytes each. */
interface Range {
  readonly lowest: number;
  readonly unit: number;
  readonly width: number;
}

interface PackedValues {
  readonly code: number;
  readonly before: number;
  readonly range: Range;
  readonly numbers: Float64Array;
}

// Scratch memory for the numbers of a block, reused by each call.
const gaps = new Float64Array(maxBlockPoints);
const integers = new Float64Array(maxBlockPoints);
const steps = new Float64Array(maxBlockPoints);
const encoded = new ArrayBuffer(headerBytes + 2 * 8 * maxBlockPoints);

/** Encodes 1 to `maxBlockPoints` points. The next call overwrites the result. */
export function encodeBlock({ times, values }: BlockColumns): Uint8Array {
  const count = times.length;
  const gapCount = count - 1;
  for (let i = 0; i < gapCount; i++) gaps[i] = times[i + 1]! - times[i]!;
  const gapRange = inUnits(gaps, gapCount, rangeOf(gaps, gapCount));
  const { code, before, range, numbers } = packedValues(values);
  const valuesAt = headerBytes + padded(gapCount * gapRange.width);
  const length = valuesAt + padded(count * range.width);
  const buffer = encoded;
  const view = new DataView(buffer);
  new Uint8Array(buffer, 0, length).fill(0);
  view.setUint8(0, form);
  view.setUint8(1, code);
  view.setUint8(2, gapRange.width);
  view.setUint8(3, range.width);
  view.setUint32(4, count, true);
  view.setFloat64(8, times[0] ?? 0, true);
  view.setFloat64(16, gapRange.lowest, true);
  view.setFloat64(24, gapRange.unit, true);
  view.setFloat64(32, before, true);
  view.setFloat64(40, range.lowest, true);
  write(integersAt(buffer, headerBytes, gapCount, gapRange.width), gaps, gapRange);
  if (code === codeFloat32) new Float32Array(buffer, valuesAt, count).set(values);
  else write(integersAt(buffer, valuesAt, count, range.width), numbers, range);
  return new Uint8Array(buffer, 0, length);
}

export function decodePoints(bytes: Uint8Array): BlockColumns {
  // Typed arrays need an offset that is a multiple of 8, but SQLite returns any offset.
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const { buffer, byteOffset } = aligned;
  const view = new DataView(buffer, byteOffset);
  const count = view.getUint32(4, true);
  if (view.getUint8(0) !== form) return decodeOlder(view, count);
  const gapWidth = view.getUint8(2);
  const above = integersAt(buffer, byteOffset + headerBytes, count - 1, gapWidth);
  const lowestGap = view.getFloat64(16, true);
  const unit = view.getFloat64(24, true);
  const times = new Float64Array(count);
  let time = (times[0] = view.getFloat64(8, true));
  for (let i = 1; i < count; i++) times[i] = time += lowestGap + (gapWidth === 0 ? 0 : above[i - 1]! * unit);
  return { times, values: decodeValues(view, byteOffset + headerBytes + padded((count - 1) * gapWidth), count) };
}

/** `at`: offset of the values in the buffer. */
function decodeValues(view: DataView, at: number, count: number): Float64Array {
  const code = view.getUint8(1);
  const width = view.getUint8(3);
  if (code === codeFloat64) return new Float64Array(view.buffer, at, count);
  if (code === codeFloat32) return Float64Array.from(new Float32Array(view.buffer, at, count));
  const packed = integersAt(view.buffer, at, count, width);
  const power = powers[code % differencesFlag]!;
  const differences = code >= differencesFlag;
  const lowest = view.getFloat64(40, true);
  const values = new Float64Array(count);
  let before = view.getFloat64(32, true);
  for (let i = 0; i < count; i++) {
    const integer = width === 0 ? lowest : lowest + packed[i]!;
    before = differences ? before + integer : integer;
    values[i] = before / power;
  }
  return values;
}

/** The encoding with the fewest bytes. */
function packedValues(values: Float64Array): PackedValues {
  const count = values.length;
  const decimals = scale(values);
  if (decimals !== undefined) {
    // Makes the first difference equal to the second.
    const before = count > 1 ? 2 * integers[0]! - integers[1]! : integers[0]!;
    for (let i = 0; i < count; i++) steps[i] = integers[i]! - (i === 0 ? before : integers[i - 1]!);
    const plain = rangeOf(integers, count);
    const range = rangeOf(steps, count);
    if (range.width < plain.width) return { code: decimals + differencesFlag, before, range, numbers: steps };
    if (plain.width < 8) return { code: decimals, before: 0, range: plain, numbers: integers };
  }
  let isSingle = true;
  for (let i = 0; i < count && isSingle; i++) isSingle = Math.fround(values[i]!) === values[i];
  const range = { lowest: 0, unit: 1, width: isSingle ? 4 : 8 };
  return { code: isSingle ? codeFloat32 : codeFloat64, before: 0, range, numbers: values };
}

/** Fills `integers` with values × 10^decimals, with the fewest decimals that restore all bits. Undefined: none do. */
function scale(values: Float64Array): number | undefined {
  let decimals = 0;
  let power = 1;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    const integer = Math.round(value * power);
    integers[i] = integer;
    // An integer cannot represent −0.
    if (integer / power === value && Math.abs(integer) < maxInteger && (integer !== 0 || !Object.is(value, -0)))
      continue;
    if (++decimals === powers.length) return undefined;
    power = powers[decimals]!;
    // Restart, since a value that fits with fewer decimals may not fit with more.
    i = -1;
  }
  return decimals;
}

function rangeOf(numbers: Float64Array, count: number): Range {
  let lowest = count === 0 ? 0 : numbers[0]!;
  let highest = lowest;
  for (let i = 1; i < count; i++) {
    const number = numbers[i]!;
    if (number < lowest) lowest = number;
    else if (number > highest) highest = number;
  }
  const width = widthOf(highest - lowest);
  return { lowest: width === 8 ? 0 : lowest, unit: 1, width };
}

function widthOf(span: number): number {
  return span === 0 ? 0 : span <= 0xff ? 1 : span <= 0xffff ? 2 : span <= 0xffff_ffff ? 4 : 8;
}

/** The range in the largest unit that divides all numbers. */
function inUnits(numbers: Float64Array, count: number, range: Range): Range {
  if (range.width < 2 || range.width === 8) return range;
  const { lowest } = range;
  let highest = 0;
  for (const unit of gapUnits) {
    let i = 0;
    for (; i < count; i++) {
      const above = numbers[i]! - lowest;
      if (Math.floor(above / unit) * unit !== above) break;
      if (above > highest) highest = above;
    }
    if (i === count) return { lowest, unit, width: widthOf(highest / unit) };
  }
  return range;
}

type Integers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Width 0: empty, since every integer is the lowest. */
function integersAt(buffer: ArrayBufferLike, at: number, count: number, width: number): Integers {
  if (width === 1) return new Uint8Array(buffer, at, count);
  if (width === 2) return new Uint16Array(buffer, at, count);
  if (width === 4) return new Uint32Array(buffer, at, count);
  return new Float64Array(buffer, at, width === 8 ? count : 0);
}

function write(into: Integers, numbers: Float64Array, { lowest, unit }: Range): void {
  for (let i = 0; i < into.length; i++) into[i] = (numbers[i]! - lowest) / unit;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

// Decodes forms 0 to 2:
//   0  u8   form of the times: 0 even steps, 1 steps in u32 µs, 2 each in f64 µs
//   4  u32  count
//   8  f64  first time
//  16  f64  form 0: the step
//  24       form 1: count − 1 × u32, padded to 8 bytes; form 2: count × f64
//   …       values, count × f64
function decodeOlder(view: DataView, count: number): BlockColumns {
  const olderHeader = 24;
  const { buffer, byteOffset } = view;
  const timesAt = byteOffset + olderHeader;
  const older = view.getUint8(0);
  const first = view.getFloat64(8, true);
  const timeBytes = older === 0 ? 0 : older === 1 ? padded((count - 1) * 4) : count * 8;
  const values = new Float64Array(buffer, timesAt + timeBytes, count);
  if (older === 2) return { times: new Float64Array(buffer, timesAt, count), values };
  const step = view.getFloat64(16, true);
  const steps = older === 1 ? new Uint32Array(buffer, timesAt, count - 1) : undefined;
  const times = new Float64Array(count);
  let time = first;
  for (let i = 0; i < count; i++) {
    if (i > 0 && steps) time += steps[i - 1]!;
    times[i] = steps ? time : first + i * step;
  }
  return { times, values };
}
