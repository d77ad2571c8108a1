// The payload as one number in text.
import { PayloadError, sample } from "../payload-error.ts";
import { parseDecimal } from "./decimal.ts";
import { utf8 } from "./utf8.ts";

/** The number. Throws `PayloadError` when the payload is anything else. */
export function numberText(payload: Buffer): number | bigint {
  const value = parseDecimal(utf8(payload).trim());
  if (value === undefined) throw new PayloadError(`is not a number: ${sample(payload)}`);
  return value;
}
