// Numbers written as text, as payloads, tables and devices send them. Integers beyond the exact range of doubles.

const decimalNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Doubles have at most 310 digits. Parsing a million digits would take a second. */
const integer = /^[+-]?\d{1,310}$/;

/** Whether `text` is an integer with a plausible number of digits. */
export function isInteger(text: string): boolean {
  return integer.test(text);
}

/** Converts to a number if that is exact. */
export function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}

/** Parses a number, or returns undefined. Integers that a double cannot represent exactly become bigints. */
export function parseDecimal(text: string): number | bigint | undefined {
  if (!decimalNumber.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) || !isInteger(text) ? value : BigInt(text.replace(/^\+/, ""));
}
