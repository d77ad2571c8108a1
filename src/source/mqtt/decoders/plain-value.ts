// The payload as one value, as simple devices send it: 21.5, 21,5 °C, true, ON. Pure.
import { PayloadError, sample, utf8 } from "./payload.ts";

/** What a reading may have as its value. */
export type Scalar = number | bigint | boolean | string;

export function isScalar(value: unknown): value is Scalar {
  return value !== null && value !== undefined && typeof value !== "object";
}

/** A number, a boolean for `true` and `false`, else the text; quotes around a text are dropped. */
export function bareValue(payload: Buffer): Scalar {
  const text = plainText(payload);
  const number = parseDecimal(text);
  if (number !== undefined) return number;
  if (text === "true") return true;
  if (text === "false") return false;
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** The text without white space around it, for words that `values` turns into numbers. */
export function plainText(payload: Buffer): string {
  return utf8(payload).trim();
}

/** A number and what may follow it: a unit, as in `21.5 °C`. */
// Escaped: a bundle that is all ASCII takes half the memory.
const withUnit = /^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(?:\s*[A-Za-z%\u00b0\u00b5\u03a9\u2030][^\d]*)?$/u;

/** Reads decimal numbers, with a unit behind them or not, and hexadecimal ones. Throws `PayloadError` for anything else. */
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
/** No double is larger than 310 digits; a number of a million would cost its parser a second. */
const integer = /^[+-]?\d{1,310}$/;

/** Whether `text` is an integer of a size that numbers have. */
export function isInteger(text: string): boolean {
  return integer.test(text);
}

/** The number that `text` is, or undefined. An integer that a double cannot hold comes as a bigint. */
export function parseDecimal(text: string): number | bigint | undefined {
  if (!decimalNumber.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) || !isInteger(text) ? value : BigInt(text.replace(/^\+/, ""));
}

/** As a number where that is exact. */
export function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
