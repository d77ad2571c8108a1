// Parses the address notations of users and manuals. Suggests what an invalid address most likely meant. Pure.
import {
  isOrder,
  isRegisterTable,
  isValueType,
  type Order,
  orders,
  registersFor,
  registersOf,
  type Table,
  type ValueType,
} from "./registers.ts";

/** Zero-based, as on the wire. */
export interface Address {
  readonly table: Table;
  /** A number from 0 to 65535; the whole value lies within this range. */
  readonly address: number;
  /** Always `bit` in bit tables. */
  readonly type: ValueType;
  /** Undefined if the address does not specify it. */
  readonly order?: Order | undefined;
  /** Bit of a register, 0 (lowest) to 15; for `bits` the lowest one, to 63. Undefined in bit tables. */
  readonly bit?: number | undefined;
  /** Highest bit of type `bits`. */
  readonly toBit?: number | undefined;
}

/** An address in parts, as in the long form of the configuration. */
interface AddressParts extends Pick<Address, "table" | "address" | "bit" | "toBit"> {
  readonly type?: string | undefined;
  readonly order?: string | undefined;
}

/**
 * The address, or an error message. Examples: `hr:4 f32 cdab`, `hr:20.3 bit`, `co:5`, `hr:0x64`, `40001 i16`, `4x00001`.
 * A number is read by its digits.
 */
export function parseAddress(input: string | number): Address | string {
  if (typeof input === "number" && !Number.isInteger(input))
    return `write "${input}" in quotes: as a number it loses its final zeros`;
  const text = String(input).trim().toLowerCase();
  const [head = "", ...rest] = text.split(/\s+/);
  const place = parsePlace(head, text);
  if (typeof place === "string") return place;
  if (rest.length > 2) return `has too many words; ${addressForm}`;

  let type: string | undefined;
  let order: string | undefined;
  let field: Pick<AddressParts, "bit" | "toBit"> = {};
  for (const word of rest) {
    const bits = /^bits\((\d{1,2})\.\.(\d{1,2})\)$/.exec(word);
    if (bits && type === undefined && place.bit === undefined) {
      type = "bits";
      field = { bit: Number(bits[1]), toBit: Number(bits[2]) };
      continue;
    }
    if (isOrder(word)) {
      if (order !== undefined) return `names two orders, ${order} and ${word}`;
      order = word;
    } else {
      if (type !== undefined) return isValueType(type) ? secondWord(type, word) : unknownWord(type);
      type = word;
    }
  }
  return addressFrom({ ...place, ...field, type, order });
}

/** An address from parts, or an error message if they do not fit each other. */
export function addressFrom(parts: AddressParts): Address | string {
  const { table, address, bit, toBit } = parts;
  const order = parts.order?.toLowerCase();
  const type = parts.type?.toLowerCase() ?? (isRegisterTable(table) && bit === undefined ? "u16" : "bit");

  if (/^(string|str|text|ascii|char)\b/.test(type)) return `${type} is refused: the service stores numbers`;
  if (!isValueType(type)) return unknownWord(type);
  if (order !== undefined && !isOrder(order)) return `${order} is no order; they are ${orders.join(", ")}`;

  if (!isRegisterTable(table)) {
    if (type !== "bit") return `${table}: holds single bits and takes no type, but here is ${type}`;
    if (bit !== undefined || order !== undefined)
      return `${table}: holds single bits: neither bit number nor order has a meaning there`;
  } else if (type === "bits") {
    if (bit === undefined || toBit === undefined || bit > toBit || toBit > 63)
      return `say which bits, the lowest first and the highest at most 63, as in ${table}:${address} bits(4..7)`;
  } else if (toBit !== undefined) return `only bits has a highest bit, ${type} has none`;
  else if (type === "bit" && bit === undefined) return `say which bit, as in ${table}:${address}.0 bit`;
  else if (type !== "bit" && bit !== undefined)
    return `bit ${bit} is one bit of the register and cannot be read as ${type}; write ${table}:${address}.${bit} bit`;
  else if (bit !== undefined && bit > 15) return `bit ${bit} does not exist: a register has bits 0 to 15`;
  const width = registersFor({ type, toBit });
  if (address > 65_535) return `${table}:${address} does not exist: addresses end at 65535`;
  if (address + width > 65_536) return `${type} takes ${width} registers and reaches beyond 65535 from ${address}`;
  return { table, address, type, order, bit, toBit };
}

/** The shortest text that `parseAddress` reads as the same address. */
export function formatAddress({ table, address, type, order, bit, toBit }: Address): string {
  if (!isRegisterTable(table)) return `${table}:${address}`;
  const place = type === "bit" ? `${table}:${address}.${bit}` : `${table}:${address}`;
  const kind = type === "bits" ? `bits(${bit}..${toBit})` : type;
  return order === undefined ? `${place} ${kind}` : `${place} ${kind} ${order}`;
}

/** The one-based Modicon number: hr:0 is 40001, or 400001 if five digits are too short. */
export function modiconNumber({ table, address }: Pick<Address, "table" | "address">): string {
  const number = address + 1;
  return `${modiconDigits[table]}${String(number).padStart(number > 9_999 ? 5 : 4, "0")}`;
}

const modiconDigits = { co: "0", di: "1", ir: "3", hr: "4" } as const satisfies Record<Table, string>;
const modiconTables: Readonly<Record<string, Table>> = { 0: "co", 1: "di", 3: "ir", 4: "hr" };

type Place = Pick<Address, "table" | "address" | "bit">;

/** The place, or an error message. `text`: the whole input, `head` its first word. */
function parsePlace(head: string, text: string): Place | string {
  const named = /^(hr|ir|co|di):(0x[0-9a-f]{1,6}|\d{1,7})(?:\.(\d{1,3}))?$/.exec(head);
  if (named) {
    const [, table = "", address = "", bit] = named;
    return place(table as Table, Number(address), bit); // one of the four: the pattern has no other
  }
  const modicon = /^([0134])(?:(\d{4,5})|x(\d{1,6}))(?:\.(\d{1,3}))?$/.exec(head);
  const table = modiconTables[modicon?.[1] ?? ""];
  if (modicon && table !== undefined) {
    const digits = modicon[2] ?? modicon[3] ?? "";
    // Ambiguous: 0x0064 is coil 64 in Modicon notation, and also a hexadecimal number.
    if (modicon[1] === "0" && modicon[3] !== undefined) return bareNumber(Number(`0x${digits}`), head);
    if (Number(digits) === 0)
      return `Modicon numbers count from 1: ${modiconNumber({ table, address: 0 })} is ${table}:0`;
    return place(table, Number(digits) - 1, modicon[4]);
  }
  const bare = /^(0x[0-9a-f]+|\d+)(?:\.\d+)?$/.exec(head);
  return bare ? bareNumber(Number(bare[1]), head) : noAddress(text);
}

function place(table: Table, address: number, bit: string | undefined): Place {
  return bit === undefined ? { table, address } : { table, address, bit: Number(bit) };
}

function secondWord(type: ValueType, word: string): string {
  return isValueType(word) ? `names two types, ${type} and ${word}` : unknownWord(word);
}

const addressForm = "the form is table:address type order, as in hr:4 f32 cdab, hr:20.3 bit or co:5";

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

function noAddress(text: string): string {
  const [first = ""] = text.split(" ");
  if (memory.test(first))
    return `${first.toUpperCase()} is a controller's own name; where it lies for Modbus differs from maker to maker, so take the address from the manual's table for Modbus (with Schneider %MW100 is hr:100, with Delta D100 is hr:4196)`;
  const parts = /^([a-z]+)[ :#/]*(?:registers?|inputs?)?[ :#/]*(\d{1,5})(?![\da-z.])[ ,:;/]*(.*)$/.exec(text);
  const table = tableNames[parts?.[1] ?? ""];
  if (parts && table !== undefined)
    return `is no Modbus address; did you mean ${`${table}:${parts[2]} ${parts[3]}`.trim()}?`;
  return `is no Modbus address; ${addressForm}`;
}

function bareNumber(number: number, text: string): string {
  if (number > 65_535) return `${text} names no table, and addresses end at 65535; ${addressForm}`;
  const before = number > 0 ? `, or hr:${number - 1} where the manual counts from 1` : "";
  return `${text} names no table: for a holding register write hr:${number}${before} (ir: input register, co: coil, di: discrete input)`;
}

/** Explains a word after the address that is neither a type nor an order. */
function unknownWord(word: string): string {
  const bare = word.replace(/[,;()]/g, "");
  const meant = typeNames[bare] ?? orderNames[bare] ?? (Object.hasOwn(registersOf, bare) ? bare : undefined);
  if (meant !== undefined && meant !== word) return `${word} is neither a type nor an order; did you mean ${meant}?`;
  if (littleNames.has(bare))
    return `${word} says too little; write cdab where the low word comes first, dcba where the low byte does (tagferry probe shows which)`;
  return `${word} is neither a type nor an order; types are ${Object.keys(registersOf).join(" ")}`;
}
