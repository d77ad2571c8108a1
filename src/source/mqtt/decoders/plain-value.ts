// A payload with a single value, as simple devices send it: 21.5, 21,5 °C, true, ON.
import { PayloadError, sample, utf8 } from "./payload.ts";

export type Scalar = number | bigint | boolean | string;

export function isScalar(value: unknown): value is Scalar {
  return value !== null && value !== undefined && typeof value !== "object";
}

/** A number, a boolean for `true` and `false`, otherwise the text without surrounding quotes. */
export function bareValue(payload: Buffer): Scalar {
  const text = plainText(payload);
  const number = parseDecimal(text);
  if (number !== undefined) return number;
  if (text === "true") return true;
  if (text === "false") return false;
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** The trimmed text, for words that `values` maps to numbers. */
export function plainText(payload: Buffer): string {
  return utf8(payload).trim();
}

/** Matches a number with an optional unit, as in `21.5 °C`. */
// Escaped, since a pure ASCII bundle takes half the memory.
const withUnit = /^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(?:\s*[A-Za-z%\u00b0\u00b5\u03a9\u2030][^\d]*)?$/u;

/** Reads decimal numbers, optionally with a unit, and hexadecimal ones. Throws `PayloadError` otherwise. */
export function numberDecoder(decimal: "." | ","): (payload: Buffer) => number | bigint {
  return (payload) => {
    const text = plainText(payload);
    if (/^0x[0-9a-f]{1,16}$/i.test(text)) return narrow(BigInt(text));
    const digits = withUnit.exec(text)?.[1];
    const value = digits === undefined ? undefined : parseDecimal(decimal === "," ? digits.replace(",", ".") : digits);
    if (value === undefined) throw new PayloadError(`is not a number: ${sample(payload)}`);
    return value;
  };
}

const decimalNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Doubles have at most 310 digits. Parsing a million digits would take a second. */
const integer = /^[+-]?\d{1,310}$/;

/** Whether `text` is an integer with a plausible number of digits. */
export function isInteger(text: string): boolean {
  return integer.test(text);
}

/** Parses a number, or returns undefined. Integers that a double cannot represent exactly become bigints. */
export function parseDecimal(text: string): number | bigint | undefined {
  if (!decimalNumber.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) || !isInteger(text) ? value : BigInt(text.replace(/^\+/, ""));
}

/** Converts to a number if that is exact. */
export function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
