// Format of a block: up to 1,024 points of one signal by ascending time. Little-endian, bit-exact.
//
//   0  u8   form: 4
//   1  u8   code of the values: 0 to 9 decimals, 14 float32, 15 float64; plus 16 if they are differences
//   2  u8   bits of a gap: 0 to 32, or 64 for float64
//   3  u8   bits of a value: 0 to 32 for integers, 32 or 64 for floats
//   4  u32  count
//   8  f64  first time, µs since the epoch
//  16  f64  lowest gap between two times, µs
//  24  f64  unit in which gaps exceed the lowest one, µs
//  32  f64  integer before the first difference
//  40  f64  lowest integer, or difference
//  48       gaps: count − 1, (gap − lowest gap) ÷ unit; lowest bits first, padded to 8 bytes
//   …       values: count; floats, or value × 10^decimals or its difference to the previous one, minus the lowest
//
// On an even grid, a point takes as many bits as the range of its values needs: 8 for 256 steps of a decimal.

/** Points by strictly ascending time, in columns of equal length. */
export interface BlockColumns {
  /** Microseconds since the epoch. */
  readonly times: Float64Array;
  readonly values: Float64Array;
}

const maxBlockPoints = 1_024;
const headerBytes = 48;
const form = 4;
const codeFloat32 = 14;
const codeFloat64 = 15;
const differencesFlag = 16;
const powers = Float64Array.from({ length: 10 }, (_, n) => 10 ** n);
/** The differences of two such integers are exact. */
const maxInteger = 2 ** 50;
/** Device clocks have resolutions of seconds, milliseconds or microseconds. */
const gapUnits = [1e6, 1e3];

/** Integers from `lowest` in steps of `unit`, with `bits` each. */
interface Range {
  readonly lowest: number;
  readonly unit: number;
  readonly bits: number;
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
  const valuesAt = headerBytes + packedBytes(gapCount, gapRange.bits);
  const length = valuesAt + packedBytes(count, range.bits);
  const view = new DataView(encoded);
  view.setUint8(0, form);
  view.setUint8(1, code);
  view.setUint8(2, gapRange.bits);
  view.setUint8(3, range.bits);
  view.setUint32(4, count, true);
  view.setFloat64(8, times[0] ?? 0, true);
  view.setFloat64(16, gapRange.lowest, true);
  view.setFloat64(24, gapRange.unit, true);
  view.setFloat64(32, before, true);
  view.setFloat64(40, range.lowest, true);
  pack(headerBytes, gaps, gapCount, gapRange);
  if (code === codeFloat32) new Float32Array(encoded, valuesAt, count).set(values);
  else pack(valuesAt, numbers, count, range);
  return new Uint8Array(encoded, 0, length);
}

export function decodePoints(bytes: Uint8Array): BlockColumns {
  // Typed arrays need an offset that is a multiple of 8, but SQLite returns any offset.
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const view = new DataView(aligned.buffer, aligned.byteOffset);
  const count = view.getUint32(4, true);
  const gapBits = view.getUint8(2);
  const lowestGap = view.getFloat64(16, true);
  const unit = view.getFloat64(24, true);
  const times = new Float64Array(count);
  unpack(view, headerBytes, count - 1, gapBits, gaps);
  let time = (times[0] = view.getFloat64(8, true));
  for (let i = 1; i < count; i++) times[i] = time += lowestGap + gaps[i - 1]! * unit;
  const valuesAt = headerBytes + packedBytes(count - 1, gapBits);
  return { times, values: decodeValues(view, valuesAt, count, view.getUint8(3)) };
}

/** `at`: offset of the values. */
function decodeValues(view: DataView, at: number, count: number, bits: number): Float64Array {
  const code = view.getUint8(1);
  if (code === codeFloat32) return Float64Array.from(new Float32Array(view.buffer, view.byteOffset + at, count));
  const values = new Float64Array(count);
  unpack(view, at, count, bits, values);
  if (code === codeFloat64) return values;
  const power = powers[code % differencesFlag]!;
  const lowest = view.getFloat64(40, true);
  if (code < differencesFlag) {
    for (let i = 0; i < count; i++) values[i] = (lowest + values[i]!) / power;
    return values;
  }
  let before = view.getFloat64(32, true);
  for (let i = 0; i < count; i++) {
    before += lowest + values[i]!;
    values[i] = before / power;
  }
  return values;
}

/** The encoding with the fewest bits. */
function packedValues(values: Float64Array): PackedValues {
  const count = values.length;
  const decimals = scale(values);
  if (decimals !== undefined) {
    // Makes the first difference equal to the second.
    const before = count > 1 ? 2 * integers[0]! - integers[1]! : integers[0]!;
    for (let i = 0; i < count; i++) steps[i] = integers[i]! - (i === 0 ? before : integers[i - 1]!);
    const plain = rangeOf(integers, count);
    const range = rangeOf(steps, count);
    if (range.bits < plain.bits) return { code: decimals + differencesFlag, before, range, numbers: steps };
    if (plain.bits < 64) return { code: decimals, before: 0, range: plain, numbers: integers };
  }
  let isSingle = true;
  for (let i = 0; i < count && isSingle; i++) isSingle = Math.fround(values[i]!) === values[i];
  const range = { lowest: 0, unit: 1, bits: isSingle ? 32 : 64 };
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
  const bits = bitsOf(highest - lowest);
  return { lowest: bits === 64 ? 0 : lowest, unit: 1, bits };
}

function bitsOf(span: number): number {
  return span <= 0xffff_ffff ? 32 - Math.clz32(span) : 64;
}

/** The range in the largest unit that divides all numbers. */
function inUnits(numbers: Float64Array, count: number, range: Range): Range {
  if (range.bits < 10 || range.bits === 64) return range;
  const { lowest } = range;
  let highest = 0;
  for (const unit of gapUnits) {
    let i = 0;
    for (; i < count; i++) {
      const above = numbers[i]! - lowest;
      if (Math.floor(above / unit) * unit !== above) break;
      if (above > highest) highest = above;
    }
    if (i === count) return { lowest, unit, bits: bitsOf(highest / unit) };
  }
  return range;
}

/** Packs (number − lowest) ÷ unit at an offset of `encoded`. */
function pack(at: number, numbers: Float64Array, count: number, { lowest, unit, bits }: Range): void {
  if (bits === 64) return new Float64Array(encoded, at, count).set(numbers.subarray(0, count));
  const words = new Uint32Array(encoded, at, packedBytes(count, bits) / 4);
  let word = 0;
  let filled = 0;
  let next = 0;
  for (let i = 0; i < count; i++) {
    const number = ((numbers[i]! - lowest) / unit) >>> 0;
    word |= number << filled;
    filled += bits;
    if (filled < 32) continue;
    words[next++] = word;
    filled -= 32;
    word = filled === 0 ? 0 : number >>> (bits - filled);
  }
  words.fill(0, next);
  if (filled > 0) words[next] = word;
}

function unpack(view: DataView, at: number, count: number, bits: number, into: Float64Array): void {
  const from = view.byteOffset + at;
  if (bits === 64) return into.set(new Float64Array(view.buffer, from, count));
  if (bits === 0) return void into.fill(0, 0, count);
  const words = new Uint32Array(view.buffer, from, packedBytes(count, bits) / 4);
  const mask = bits === 32 ? -1 : (1 << bits) - 1;
  let next = 0;
  let used = 32;
  let word = 0;
  for (let i = 0; i < count; i++) {
    if (used === 32) {
      word = words[next++]!;
      used = 0;
    }
    let number = word >>> used;
    used += bits;
    if (used > 32) {
      word = words[next++]!;
      used -= 32;
      number |= word << (bits - used);
    }
    into[i] = (number & mask) >>> 0;
  }
}

/** Multiple of 8, so that typed arrays can follow. */
function packedBytes(count: number, bits: number): number {
  return Math.ceil((count * bits) / 64) * 8;
}
