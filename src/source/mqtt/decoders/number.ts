// The payload as one number in text.

import { parseDecimal } from "./decimal.ts";
import { PayloadError, sample } from "./payload-error.ts";
import { utf8 } from "./utf8.ts";

/** A number and what may follow it: a unit, as in `21.5 °C`. */
const withUnit = /^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(?:\s*[A-Za-z%°µΩ‰][^\d]*)?$/u;

/** Reads decimal numbers, with a unit behind them or not, and hexadecimal ones. Throws `PayloadError` for anything else. */
export function numberDecoder(decimal: "." | ","): (payload: Buffer) => number | bigint {
  return (payload) => {
    const text = utf8(payload).trim();
    if (/^0x[0-9a-f]{1,16}$/i.test(text)) return hexadecimal(text);
    const digits = withUnit.exec(text)?.[1];
    const value = digits === undefined ? undefined : parseDecimal(decimal === "," ? digits.replace(",", ".") : digits);
    if (value === undefined) throw new PayloadError(`is not a number: ${sample(payload)}`);
    return value;
  };
}

function hexadecimal(text: string): number | bigint {
  const value = BigInt(text);
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
