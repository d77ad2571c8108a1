// Reads and writes the numbers of the binary formats: little endian, integers up to 2^53 as JavaScript numbers.
import { crc32 as native } from "node:zlib";

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(capacity = 4_096) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** The bytes written so far. Valid until the next write. */
  written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Truncates to `length` and keeps the memory. */
  cut(length = 0): void {
    this.#length = length;
  }

  /** Appends `count` bytes for the caller to set, and returns them. Valid until the next write. */
  room(count: number): Uint8Array<ArrayBuffer> {
    this.#reserve(count);
    this.#length += count;
    return this.#bytes.subarray(this.#length - count, this.#length);
  }

  /** Appends `count` zero bytes, to be set later, and returns their offset. */
  skip(count: number): number {
    this.room(count).fill(0);
    return this.#length - count;
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  u32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  f32(value: number): void {
    this.#reserve(4);
    this.#view.setFloat32(this.#length, value, true);
    this.#length += 4;
  }

  f64(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** An integer from 0 to 2^53, seven bits a byte. */
  varint(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest >= 0x8000_0000) {
      this.#bytes[this.#length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** A signed integer from −2^52 to 2^52. */
  zigzag(value: number): void {
    this.varint(value < 0 ? -value * 2 - 1 : value * 2);
  }

  /** Appends the changes of the difference between neighbours as zigzag integers: what `ByteReader` of it reads. */
  deltasOfDeltas(values: Float64Array, start: number, end: number): void {
    this.#reserve(end - start);
    let before = values[start + 1]!;
    let step = before - values[start]!;
    for (let i = start + 2; i < end; i++) {
      const value = values[i]!;
      const change = value - before - step;
      step = value - before;
      before = value;
      if (change >= -64 && change < 64) this.#bytes[this.#length++] = (change << 1) ^ (change >> 31);
      else {
        this.zigzag(change);
        this.#reserve(end - i);
      }
    }
  }

  /** Length, then UTF-8. */
  text(value: string): void {
    const bytes = encoder.encode(value);
    this.varint(bytes.length);
    this.raw(bytes);
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + count));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Reads from `start` to `end` and throws `RangeError` beyond, so that wrong lengths are detected. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  u8(): number {
    return this.#bytes[this.#step(1)]!;
  }

  u32(): number {
    return this.#view.getUint32(this.#step(4), true);
  }

  f32(): number {
    return this.#view.getFloat32(this.#step(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#step(8), true);
  }

  varint(): number {
    let byte = this.u8();
    if (byte < 128) return byte;
    let value = byte & 127;
    let factor = 128;
    do {
      byte = this.u8();
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte >= 128 && factor < 2 ** 56);
    return value;
  }

  zigzag(): number {
    const value = this.varint();
    if (value < 0x8000_0000) return (value >>> 1) ^ -(value & 1);
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /**
   * Fills `values` from index 2 on. The next zigzag integers are the changes of the difference between neighbours. Most
   * take one byte, which this loop reads without a call.
   */
  deltasOfDeltas(values: Float64Array): void {
    const before = values[0]!;
    let value = values[1]!;
    let step = value - before;
    let at = this.#at;
    for (let i = 2; i < values.length; i++) {
      const byte = at < this.#end ? this.#bytes[at]! : 128;
      if (byte < 128) {
        at++;
        step += (byte >>> 1) ^ -(byte & 1);
      } else {
        this.#at = at;
        step += this.zigzag();
        at = this.#at;
      }
      value += step;
      values[i] = value;
    }
    this.#at = at;
  }

  /** The next `count` bytes, as a view without a copy. */
  raw(count: number): Uint8Array {
    const at = this.#step(count);
    return this.#bytes.subarray(at, at + count);
  }

  text(): string {
    const length = this.varint();
    const at = this.#step(length);
    return decoder.decode(this.#bytes.subarray(at, at + length));
  }

  #step(count: number): number {
    const at = this.#at;
    if (count > this.#end - at) throw new RangeError("ends too early");
    this.#at = at + count;
    return at;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// CRC-32 as in Ethernet and zlib, the checksum of every header and record. Detects every burst of up to 32 wrong bits.
// Check value of "123456789": 0xCBF43926.

export function crc32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  return native(bytes.subarray(start, end));
}

/** The checksum as eight hexadecimal digits, for files of text. */
export function crc32Text(text: Uint8Array | string): string {
  return native(text).toString(16).padStart(8, "0");
}

export function copied<Column extends { set(from: Column): void }>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}

// A value is an integer multiple of a power of ten, if that reproduces it bit by bit.

/** Limit of the integers: the zigzag encoding of a difference of two of them is still exact. */
export const maxScaled = 2 ** 50;
export const maxDecimals = 14;
export const powers = Float64Array.from({ length: maxDecimals + 1 }, (_, n) => 10 ** n);

export function isExact(value: number, power: number): boolean {
  const scaled = Math.round(value * power);
  // −0 has no integer form.
  return (
    scaled / power === value && scaled < maxScaled && scaled > -maxScaled && (scaled !== 0 || !Object.is(value, -0))
  );
}
