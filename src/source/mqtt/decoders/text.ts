// The payload as a text, for words that `values` turns into numbers.
import { utf8 } from "./utf8.ts";

/** The text without white space around it. */
export function plainText(payload: Buffer): string {
  return utf8(payload).trim();
}
