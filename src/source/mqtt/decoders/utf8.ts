// Payloads as text.
import { isUtf8 } from "node:buffer";
import { PayloadError } from "./payload-error.ts";

/** The text of `payload`, without byte order mark and trailing zero bytes. Throws `PayloadError` when it is not UTF-8. */
export function utf8(payload: Buffer): string {
  if (!isUtf8(payload)) throw new PayloadError("is not UTF-8");
  let end = payload.length;
  while (end > 0 && payload[end - 1] === 0) end--;
  const text = payload.toString("utf8", 0, end);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
