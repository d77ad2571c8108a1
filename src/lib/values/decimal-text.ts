// Decimal numbers: written as text, as payloads, tables and devices send them; scaled by powers of ten; the shortest one
// of a float. Integers beyond the exact range of doubles.

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

/** `value` times ten to the power of `exponent`, without binary rounding errors: 2301 and −1 give 230.1. */
export function scaled(value: number | bigint, exponent: number): number | bigint {
  // A bigint is beyond 2^53: as a number it would be rounded before the division.
  if (typeof value === "bigint") return exponent < 0 ? Number(`${value}e${exponent}`) : value * 10n ** BigInt(exponent);
  // Dividing an integer by a power of ten rounds once; multiplying by 0.1 may not give the nearest double.
  return exponent < 0 ? value / 10 ** -exponent : value * 10 ** exponent;
}

/** A binary floating-point format. `digits`: decimal digits that always survive rounding to it. */
interface FloatFormat {
  readonly round: (value: number) => number;
  readonly smallestNormal: number;
  readonly digits: number;
}
export const float16: FloatFormat = { round: Math.f16round, smallestNormal: 2 ** -14, digits: 3 };
export const float32: FloatFormat = { round: Math.fround, smallestNormal: 2 ** -126, digits: 6 };

/** The shortest decimal that rounds to `value` in `format`: 0.1 instead of 0.10000000149011612. */
export function shortestDecimal(value: number, format: FloatFormat): number {
  if (!Number.isFinite(value)) return value;
  // Any decimal with at most `digits` digits that rounds to `value` equals `toPrecision(digits)`, except for zeros.
  const from = Math.abs(value) < format.smallestNormal ? 1 : format.digits;
  for (let digits = from; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (format.round(decimal) === value) return decimal;
  }
  return Number(value.toPrecision(9));
}
