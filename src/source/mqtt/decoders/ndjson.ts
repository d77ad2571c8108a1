// One JSON document a line.
import { PayloadError } from "../payload-error.ts";
import { jsonDocument } from "./json.ts";
import { utf8 } from "./utf8.ts";

/** The documents, in an array. Lines without anything are passed over. */
export function jsonLines(payload: Buffer): unknown {
  const lines = utf8(payload)
    .split("\n")
    .filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new PayloadError("has no line");
  return lines.map((line) => jsonDocument(Buffer.from(line)));
}
