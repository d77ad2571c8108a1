// Tables, number formats and byte orders of registers, and how values are decoded from them. Pure.
//
// Words arrive high byte first. `badc` and `dcba` swap the bytes of each word; `cdab` and `dcba` reverse the words. The
// decoder restores `abcd` first:
//
//   f32 123456.79   abcd 47 F1 20 65   cdab 20 65 47 F1   badc F1 47 65 20   dcba 65 20 F1 47
import { float16, float32, narrow, shortestDecimal } from "../../../lib/values/decimal-text.ts";

export type RegisterTable = "hr" | "ir";
type BitTable = "co" | "di";
export type Table = RegisterTable | BitTable;

/** `abcd`: high byte and high word first, as specified. `cdab`: low word first. `badc`: bytes swapped. `dcba`: both. */
export type Order = (typeof orders)[number];
export const orders = ["abcd", "cdab", "badc", "dcba"] as const;

/** Registers per value; for `bits` it depends on the highest bit. */
export const registersOf = {
  bit: 1,
  bits: 1,
  u8: 1,
  u8h: 1,
  i8: 1,
  i8h: 1,
  u16: 1,
  i16: 1,
  u24: 2,
  i24: 2,
  u32: 2,
  i32: 2,
  u48: 3,
  i48: 3,
  u64: 4,
  i64: 4,
  f16: 1,
  f32: 2,
  f64: 4,
  bcd16: 1,
  bcd32: 2,
  bcd64: 4,
  sm16: 1,
  sm32: 2,
  m10k2: 2,
  m10k3: 3,
  m10k4: 4,
} as const satisfies Record<string, number>;

export type ValueType = keyof typeof registersOf;

export function isValueType(text: string): text is ValueType {
  return Object.hasOwn(registersOf, text);
}

export function isOrder(text: string): text is Order {
  return orders.some((order) => order === text);
}

export function isTable(text: string): text is Table {
  return text === "hr" || text === "ir" || text === "co" || text === "di";
}

export function isRegisterTable(table: Table): table is RegisterTable {
  return table === "hr" || table === "ir";
}

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

type Value = number | bigint | boolean;

/** Reads the value whose bytes begin at `at`. Undefined if they are not a valid value of the type. May return −0 or NaN. */
export type RegisterReader = (bytes: Uint8Array, at: number) => Value | undefined;

/** Registers that a value occupies; for `bits`, up to its highest bit. */
export function registersFor({ type, toBit }: Pick<RegisterFormat, "type" | "toBit">): number {
  return type === "bits" ? Math.floor((toBit ?? 0) / 16) + 1 : registersOf[type];
}

/** Decodes the value at register `index`. `bytes` must hold all of it. */
export function decodeRegisters(bytes: Uint8Array, index: number, format: RegisterFormat): Decoded {
  const value = registerReader(format)(bytes, index * 2);
  const count = registersFor(format);
  if (value === undefined) return { ok: false, reason: `the registers hold no ${format.type}: ${hexadecimal(count)}` };
  if (typeof value === "number" && !Number.isFinite(value)) return { ok: false, reason: `the device gave ${value}` };
  if (isNull(value, count, format))
    return { ok: false, reason: `the device has no value: it gave ${hexadecimal(count)}` };
  return { ok: true, value: value === 0 ? 0 : value }; // −0 is 0
}

/** The registers of the value that was read last, in the order `abcd`. */
const registers = new Uint8Array(8);
const view = new DataView(registers.buffer);

/** Does not apply `nullValues`. Allocates nothing for a value of at most 32 bits, or a float. */
export function registerReader(format: RegisterFormat): RegisterReader {
  const { order, bit = 0, toBit = 0 } = format;
  const read = readers[format.type];
  const count = registersFor(format);
  const place = { count, bit, toBit };
  return (bytes, at) => {
    reorder(bytes, at, count, order, registers);
    return read(place);
  };
}

/** Copies `count` registers from `at` on to `into`: from `order` to `abcd`, or back. The caller checks the length. */
export function reorder(bytes: Uint8Array, at: number, count: number, order: Order, into: Uint8Array): void {
  const swapBytes = order === "badc" || order === "dcba" ? 1 : 0;
  const swapWords = order === "cdab" || order === "dcba";
  for (let i = 0; i < count; i++) {
    const from = at + (swapWords ? count - 1 - i : i) * 2;
    into[i * 2] = bytes[from + swapBytes]!;
    into[i * 2 + 1] = bytes[from + 1 - swapBytes]!;
  }
}

/** Bit `index` of the packed bits of a coil or discrete input reply. */
export function decodeBit(bytes: Uint8Array, index: number): boolean {
  return (((bytes[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;
}

interface Place {
  /** Registers of the value. */
  readonly count: number;
  readonly bit: number;
  readonly toBit: number;
}

/** Reads `view`. Undefined if the bits are not a valid value of the type. */
type Reader = (place: Place) => Value | undefined;

const readers: Readonly<Record<ValueType, Reader>> = {
  bit: ({ bit }) => ((view.getUint16(0) >> bit) & 1) === 1,
  bits: ({ count, bit, toBit }) => narrow(BigInt.asUintN(toBit - bit + 1, wide(count) >> BigInt(bit))),
  u8: () => view.getUint8(1),
  u8h: () => view.getUint8(0),
  i8: () => view.getInt8(1),
  i8h: () => view.getInt8(0),
  u16: () => view.getUint16(0),
  i16: () => view.getInt16(0),
  u24: () => view.getUint32(0) & 0xff_ff_ff,
  i24: () => (view.getInt32(0) << 8) >> 8,
  u32: () => view.getUint32(0),
  i32: () => view.getInt32(0),
  u48: () => view.getUint16(0) * 2 ** 32 + view.getUint32(2),
  i48: () => view.getInt16(0) * 2 ** 32 + view.getUint32(2),
  u64: () => narrow(view.getBigUint64(0)),
  i64: () => narrow(view.getBigInt64(0)),
  f16: () => shortestDecimal(view.getFloat16(0), float16),
  f32: () => shortestDecimal(view.getFloat32(0), float32),
  f64: () => view.getFloat64(0),
  bcd16: bcd,
  bcd32: bcd,
  bcd64: bcd,
  // The highest bit is the sign, the others the magnitude.
  sm16: () => (view.getUint16(0) & 0x7f_ff) * sign(),
  sm32: () => (view.getUint32(0) & 0x7f_ff_ff_ff) * sign(),
  m10k2: modulo10000,
  m10k3: modulo10000,
  m10k4: modulo10000,
};

function sign(): number {
  return view.getInt8(0) < 0 ? -1 : 1;
}

/** The first `count` registers as a number without sign. */
function wide(count: number): bigint {
  return view.getBigUint64(0) >> BigInt(64 - 16 * count);
}

/** Four decimal digits per register. */
function bcd({ count }: Place): Value | undefined {
  const digits = hexadecimalDigits(count);
  return /^\d+$/.test(digits) ? narrow(BigInt(digits)) : undefined;
}

/** Square D and others: register n counts 10000^(n−1), each from −9999 to 9999; the first is the least significant. */
function modulo10000({ count }: Place): Value | undefined {
  let sum = 0n;
  for (let i = count - 1; i >= 0; i--) {
    const part = view.getInt16(i * 2);
    if (Math.abs(part) > 9_999) return undefined;
    sum = sum * 10_000n + BigInt(part);
  }
  return narrow(sum);
}

function isNull(value: Value, count: number, { type, nullValues }: RegisterFormat): boolean {
  if (nullValues === undefined || typeof value === "boolean") return false;
  if (nullValues === "sunspec") return sunspecNull[type] === wide(count);
  // Users write the register content (0x8000) or the decoded value (-32768); for floats only the latter.
  const raw = isFloat(type) ? undefined : narrow(wide(count));
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

/** "Not implemented" of the SunSpec models. Floats use NaN, which is never a value. */
const sunspecNull: Partial<Readonly<Record<ValueType, bigint>>> = {
  i16: 0x80_00n,
  i32: 0x80_00_00_00n,
  i64: 0x80_00_00_00_00_00_00_00n,
  u16: 0xff_ffn,
  u32: 0xff_ff_ff_ffn,
  u64: 0xff_ff_ff_ff_ff_ff_ff_ffn,
};

/** The first `count` registers. */
function hexadecimalDigits(count: number): string {
  return Buffer.from(registers.buffer, 0, count * 2).toString("hex");
}

function hexadecimal(count: number): string {
  return `0x${hexadecimalDigits(count).toUpperCase()}`;
}
