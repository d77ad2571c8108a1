// What to say of a text that is no address: what the person who copied it from a manual most likely meant. Pure.
import type { Order, Table, ValueType } from "./value-type.ts";
import { registersOf } from "./value-type.ts";

export const addressForm = "the form is table:address type order, as in hr:4 f32 cdab, hr:20.3 bit or co:5";

/** What manuals and other programs call the types. Only for suggestions: a `word` may also be signed. */
const typeNames: Readonly<Record<string, ValueType>> = {
  bool: "bit",
  boolean: "bit",
  byte: "u8",
  uint8: "u8",
  usint: "u8",
  int8: "i8",
  sint: "i8",
  uint16: "u16",
  uint: "u16",
  ushort: "u16",
  word: "u16",
  int16: "i16",
  int: "i16",
  short: "i16",
  s16: "i16",
  uint32: "u32",
  udint: "u32",
  ulong: "u32",
  dword: "u32",
  int32: "i32",
  dint: "i32",
  long: "i32",
  s32: "i32",
  uint48: "u48",
  int48: "i48",
  uint64: "u64",
  ulint: "u64",
  lword: "u64",
  int64: "i64",
  lint: "i64",
  s64: "i64",
  half: "f16",
  float16: "f16",
  float: "f32",
  float32: "f32",
  single: "f32",
  real: "f32",
  double: "f64",
  float64: "f64",
  lreal: "f64",
  bcd: "bcd16",
  mod10: "m10k4",
};

const orderNames: Readonly<Record<string, Order>> = {
  "1234": "abcd",
  be: "abcd",
  big: "abcd",
  "big-endian": "abcd",
  "3412": "cdab",
  "2143": "badc",
  "4321": "dcba",
};
/** Said of devices that send the low word first as well as of those that also swap the bytes. */
const littleNames = new Set(["le", "little", "little-endian", "swap", "swapped"]);

/** What manuals and other programs call the tables. */
const tableNames: Readonly<Record<string, Table>> = {
  h: "hr",
  hr: "hr",
  hreg: "hr",
  holding: "hr",
  ir: "ir",
  ireg: "ir",
  input: "ir",
  c: "co",
  co: "co",
  coil: "co",
  di: "di",
  discrete: "di",
};

/** Names that a controller gives its memory: `%MW100`, `D100`, `VW100`. */
const memory = /^(?:%?(?:m|i|q|k)[xbwdfl]?|%s|d|vw|vd|v|r)\d+(?:\.\d+)?$/;

/** Of a text whose first word is no address. */
export function noAddress(text: string): string {
  const [first = ""] = text.split(" ");
  if (memory.test(first))
    return `${first.toUpperCase()} is a controller's own name; where it lies for Modbus differs from maker to maker, so take the address from the manual's table for Modbus (with Schneider %MW100 is hr:100, with Delta D100 is hr:4196)`;
  const parts = /^([a-z]+)[ :#/]*(?:registers?|inputs?)?[ :#/]*(\d{1,5})(?![\da-z.])[ ,:;/]*(.*)$/.exec(text);
  const table = tableNames[parts?.[1] ?? ""];
  if (parts && table !== undefined)
    return `is no Modbus address; did you mean ${`${table}:${parts[2]} ${parts[3]}`.trim()}?`;
  return `is no Modbus address; ${addressForm}`;
}

/** Of a number without a table. */
export function bareNumber(number: number, text: string): string {
  if (number > 65_535) return `${text} names no table, and addresses end at 65535; ${addressForm}`;
  const before = number > 0 ? `, or hr:${number - 1} where the manual counts from 1` : "";
  return `${text} names no table: for a holding register write hr:${number}${before} (ir: input register, co: coil, di: discrete input)`;
}

/** Of a word behind the address that is neither a type nor an order. */
export function unknownWord(word: string): string {
  const bare = word.replace(/[,;()]/g, "");
  const meant = typeNames[bare] ?? orderNames[bare] ?? (Object.hasOwn(registersOf, bare) ? bare : undefined);
  if (meant !== undefined && meant !== word) return `${word} is neither a type nor an order; did you mean ${meant}?`;
  if (littleNames.has(bare))
    return `${word} says too little; write cdab where the low word comes first, dcba where the low byte does (tagferry probe shows which)`;
  return `${word} is neither a type nor an order; types are ${Object.keys(registersOf).join(" ")}`;
}
