// The payload as a bare value, as simple devices send it: 21.5, true, ON.
import { parseDecimal } from "./decimal.ts";
import { utf8 } from "./utf8.ts";

/** A number, a boolean for `true` and `false`, else the text; quotes around a text are dropped. */
export function bareValue(payload: Buffer): number | bigint | boolean | string {
  const text = utf8(payload).trim();
  const number = parseDecimal(text);
  if (number !== undefined) return number;
  if (text === "true") return true;
  if (text === "false") return false;
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}
