// Decodes registers for every type and byte order. Pure.
//
// Words arrive high byte first. `badc` and `dcba` swap the bytes of each word; `cdab` and `dcba` reverse the words. The
// decoder restores `abcd` first:
//
//   f32 123456.79   abcd 47 F1 20 65   cdab 20 65 47 F1   badc F1 47 65 20   dcba 65 20 F1 47
import { float16, float32, shortestDecimal } from "../../../lib/values/shortest-decimal.ts";
import { registersFor } from "./address.ts";
import type { Order, ValueType } from "./value-type.ts";

export interface RegisterFormat {
  readonly type: ValueType;
  readonly order: Order;
  /** Bit of type `bit`, 0 (lowest) to 15; lowest bit of type `bits`. */
  readonly bit?: number | undefined;
  /** Highest bit of type `bits`, to 63. */
  readonly toBit?: number | undefined;
  /** Raw values that mean "none". */
  readonly nullValues?: readonly number[] | "sunspec" | undefined;
}

/** A value, or why there is none. A bigint only beyond ±(2^53 − 1). */
export type Decoded =
  | { readonly ok: true; readonly value: number | bigint | boolean }
  | { readonly ok: false; readonly reason: string };

/** Reads the number whose bytes begin at `at`. */
export type RegisterReader = (bytes: Uint8Array, at: number) => number;

/** Decodes the value at register `index`. `bytes` must hold all of it. */
export function decodeRegisters(bytes: Uint8Array, index: number, format: RegisterFormat): Decoded {
  const words = wordsOf(bytes, index, format);
  const { bit = 0, toBit = 0 } = format;
  const value = readers[format.type](words, { bit, toBit });
  if (value === undefined) return { ok: false, reason: `the registers hold no ${format.type}: ${hexadecimal(words)}` };
  if (typeof value === "number" && !Number.isFinite(value)) return { ok: false, reason: `the device gave ${value}` };
  if (isNull(value, words, format))
    return { ok: false, reason: `the device has no value: it gave ${hexadecimal(words)}` };
  return { ok: true, value: value === 0 ? 0 : value }; // −0 is 0
}

/** A `decodeRegisters` without allocations; NaN if there is no value. Undefined if the format is not simple. */
export function simpleReader({ type, order, nullValues }: RegisterFormat): RegisterReader | undefined {
  const read = nullValues === undefined ? simpleReaders[type] : undefined;
  if (!read) return undefined;
  const count = registersFor({ type });
  const swapBytes = order === "badc" || order === "dcba" ? 1 : 0;
  const swapWords = order === "cdab" || order === "dcba";
  return (bytes, at) => {
    for (let i = 0; i < count; i++) {
      const from = at + (swapWords ? count - 1 - i : i) * 2;
      scratch[i * 2] = bytes[from + swapBytes]!;
      scratch[i * 2 + 1] = bytes[from + 1 - swapBytes]!;
    }
    return read(scratchView);
  };
}

const scratch = new Uint8Array(8);
const scratchView = new DataView(scratch.buffer);
const simpleReaders: Partial<Readonly<Record<ValueType, (view: DataView) => number>>> = {
  u16: (data) => data.getUint16(0),
  i16: (data) => data.getInt16(0),
  u32: (data) => data.getUint32(0),
  i32: (data) => data.getInt32(0),
  f32: (data) => shortestDecimal(data.getFloat32(0), float32),
  f64: (data) => data.getFloat64(0),
};

/** Bit `index` of the packed bits of a coil or discrete input reply. */
export function decodeBit(bytes: Uint8Array, index: number): boolean {
  return (((bytes[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;
}

function wordsOf(bytes: Uint8Array, index: number, format: RegisterFormat): number[] {
  const { order } = format;
  const count = registersFor(format);
  const swapBytes = order === "badc" || order === "dcba";
  const swapWords = order === "cdab" || order === "dcba";
  const words: number[] = Array.from({ length: count });
  for (let i = 0; i < count; i++) {
    const at = (index + i) * 2;
    const first = bytes[at]!; // the caller checks the length
    const second = bytes[at + 1]!;
    words[swapWords ? count - 1 - i : i] = swapBytes ? (second << 8) | first : (first << 8) | second;
  }
  return words;
}

type Words = readonly number[];
type Bits = Readonly<Record<"bit" | "toBit", number>>;
/** Undefined if the bits are not a valid value of the type. */
type Reader = (words: Words, bits: Bits) => number | bigint | boolean | undefined;

const signedWords: Reader = (words) => signed(unsigned(words), 16 * words.length);
const readers: Readonly<Record<ValueType, Reader>> = {
  bit: ([word = 0], { bit }) => ((word >> bit) & 1) === 1,
  bits: (words, { bit, toBit }) => narrow(BigInt.asUintN(toBit - bit + 1, wide(words) >> BigInt(bit))),
  u8: ([word = 0]) => word & 0xff,
  u8h: ([word = 0]) => word >> 8,
  i8: ([word = 0]) => (word << 24) >> 24,
  i8h: ([word = 0]) => (word << 16) >> 24,
  u16: unsigned,
  u32: unsigned,
  u48: unsigned,
  u64: (words) => narrow(wide(words)),
  i16: signedWords,
  i32: signedWords,
  i48: signedWords,
  i64: (words) => narrow(BigInt.asIntN(64, wide(words))),
  u24: (words) => unsigned(words) & 0xff_ff_ff,
  i24: (words) => signed(unsigned(words) & 0xff_ff_ff, 24),
  f16: (words) => shortestDecimal(view(words).getFloat16(0), float16),
  f32: (words) => shortestDecimal(view(words).getFloat32(0), float32),
  f64: (words) => view(words).getFloat64(0),
  bcd16: bcd,
  bcd32: bcd,
  bcd64: bcd,
  sm16: signMagnitude,
  sm32: signMagnitude,
  m10k2: modulo10000,
  m10k3: modulo10000,
  m10k4: modulo10000,
};

function unsigned(words: readonly number[]): number {
  return words.reduce((value, word) => value * 65_536 + word, 0);
}

function wide(words: readonly number[]): bigint {
  return words.reduce((value, word) => (value << 16n) | BigInt(word), 0n);
}

function signed(value: number, bits: number): number {
  return value >= 2 ** (bits - 1) ? value - 2 ** bits : value;
}

function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}

function view(words: readonly number[]): DataView {
  const data = new DataView(new ArrayBuffer(words.length * 2));
  words.forEach((word, i) => {
    data.setUint16(i * 2, word);
  });
  return data;
}

/** Four decimal digits per word. */
function bcd(words: readonly number[]): number | bigint | undefined {
  const digits = hexadecimalDigits(words);
  return /^\d+$/.test(digits) ? narrow(BigInt(digits)) : undefined;
}

/** The highest bit is the sign, the others the magnitude. */
function signMagnitude(words: readonly number[]): number {
  const value = unsigned(words);
  const sign = 2 ** (16 * words.length - 1);
  return value >= sign ? sign - value : value;
}

/** Square D and others: register n counts 10000^(n−1), each from −9999 to 9999; the first is the least significant. */
function modulo10000(words: readonly number[]): number | bigint | undefined {
  let value = 0n;
  for (const word of words.toReversed()) {
    const part = signed(word, 16);
    if (Math.abs(part) > 9_999) return undefined;
    value = value * 10_000n + BigInt(part);
  }
  return narrow(value);
}

function isNull(
  value: number | bigint | boolean,
  words: readonly number[],
  { type, nullValues }: RegisterFormat,
): boolean {
  if (nullValues === undefined || typeof value === "boolean") return false;
  if (nullValues === "sunspec") return sunspecNull[type]?.(words) ?? false;
  // Users write the register content (0x8000) or the decoded value (-32768); for floats only the latter.
  const raw = isFloat(type) ? undefined : narrow(wide(words));
  return nullValues.some((nothing) => nothing === raw || nothing === value || isBeyondDoubles(nothing, raw));
}

function isFloat(type: ValueType): boolean {
  return type === "f16" || type === "f32" || type === "f64";
}

/** Compares within the precision of a double: a file yields 0xFFFFFFFFFFFFFFFF as 2^64, one too many. */
function isBeyondDoubles(written: number, raw: number | bigint | undefined): boolean {
  if (typeof raw !== "bigint" || !Number.isInteger(written)) return false;
  return raw === BigInt(written) || raw === BigInt(written) - 1n;
}

const lowest = ([first, ...rest]: readonly number[]) => first === 0x80_00 && rest.every((word) => word === 0);
const highest = (words: readonly number[]) => words.every((word) => word === 0xff_ff);
/** "Not implemented" of the SunSpec models. Floats use NaN, which is never a value. */
const sunspecNull: Partial<Readonly<Record<ValueType, (words: readonly number[]) => boolean>>> = {
  i16: lowest,
  i32: lowest,
  i64: lowest,
  u16: highest,
  u32: highest,
  u64: highest,
};

function hexadecimalDigits(words: readonly number[]): string {
  return words.map((word) => word.toString(16).padStart(4, "0")).join("");
}

function hexadecimal(words: readonly number[]): string {
  return `0x${hexadecimalDigits(words).toUpperCase()}`;
}
