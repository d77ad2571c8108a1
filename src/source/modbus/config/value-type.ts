// Number formats in registers, and byte orders.

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
