// Suggestions for an invalid address: what the user most likely meant. Pure.
import type { Order, Table, ValueType } from "./value-type.ts";
import { registersOf } from "./value-type.ts";

export const addressForm = "the form is table:address type order, as in hr:4 f32 cdab, hr:20.3 bit or co:5";

/** Type names in manuals and other programs, only for suggestions: a `word` may be signed. */
const typeNames = byName<ValueType>({
  bit: "bool boolean",
  u8: "byte uint8 usint",
  i8: "int8 sint",
  u16: "uint16 uint ushort word",
  i16: "int16 int short s16",
  u32: "uint32 udint ulong dword",
  i32: "int32 dint long s32",
  u48: "uint48",
  i48: "int48",
  u64: "uint64 ulint lword",
  i64: "int64 lint s64",
  f16: "half float16",
  f32: "float float32 single real",
  f64: "double float64 lreal",
  bcd16: "bcd",
  m10k4: "mod10",
});
const orderNames = byName<Order>({ abcd: "1234 be big big-endian", cdab: "3412", badc: "2143", dcba: "4321" });
/** Ambiguous: used for swapped words, with or without swapped bytes. */
const littleNames = new Set(["le", "little", "little-endian", "swap", "swapped"]);

const tableNames = byName<Table>({
  hr: "h hr hreg holding",
  ir: "ir ireg input",
  co: "c co coil",
  di: "di discrete",
});

/** Inverts a map whose values are names separated by spaces. */
function byName<Meaning extends string>(
  names: Readonly<Partial<Record<Meaning, string>>>,
): Readonly<Partial<Record<string, Meaning>>> {
  const pairs = Object.entries(names) as [Meaning, string][]; // the keys are those of `Meaning`
  return Object.fromEntries(pairs.flatMap(([meaning, words]) => words.split(" ").map((word) => [word, meaning])));
}

/** Memory names of controllers: `%MW100`, `D100`, `VW100`. */
const memory = /^(?:%?(?:m|i|q|k)[xbwdfl]?|%s|d|vw|vd|v|r)\d+(?:\.\d+)?$/;

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

export function bareNumber(number: number, text: string): string {
  if (number > 65_535) return `${text} names no table, and addresses end at 65535; ${addressForm}`;
  const before = number > 0 ? `, or hr:${number - 1} where the manual counts from 1` : "";
  return `${text} names no table: for a holding register write hr:${number}${before} (ir: input register, co: coil, di: discrete input)`;
}

/** Explains a word after the address that is neither a type nor an order. */
export function unknownWord(word: string): string {
  const bare = word.replace(/[,;()]/g, "");
  const meant = typeNames[bare] ?? orderNames[bare] ?? (Object.hasOwn(registersOf, bare) ? bare : undefined);
  if (meant !== undefined && meant !== word) return `${word} is neither a type nor an order; did you mean ${meant}?`;
  if (littleNames.has(bare))
    return `${word} says too little; write cdab where the low word comes first, dcba where the low byte does (tagferry probe shows which)`;
  return `${word} is neither a type nor an order; types are ${Object.keys(registersOf).join(" ")}`;
}
