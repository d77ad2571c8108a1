// JSON documents one after the other: one a line, or without anything between them.

import { jsonDocument } from "./json.ts";
import { PayloadError } from "./payload-error.ts";
import { utf8 } from "./utf8.ts";

/** The documents, in an array. Lines without anything are passed over. */
export function jsonLines(payload: Buffer): unknown {
  const documents = documentsIn(utf8(payload));
  if (documents.length === 0) throw new PayloadError("has no line");
  return documents.map((document) => jsonDocument(Buffer.from(document)));
}

/** An object or array ends with its bracket, anything else with its line. */
function documentsIn(text: string): readonly string[] {
  const found: string[] = [];
  let begin = 0;
  let depth = 0;
  let quoted = false;
  const cut = (end: number) => {
    const document = text.slice(begin, end);
    if (document.trim() !== "") found.push(document);
    begin = end;
  };
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at);
    if (sign === "\\" && quoted) at++;
    else if (sign === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (sign === "\n" && depth === 0) cut(at);
    else if (sign === "{" || sign === "[") {
      if (depth++ === 0) cut(at);
    } else if (sign === "}" || sign === "]") {
      if (--depth === 0) cut(at + 1);
    }
  }
  cut(text.length);
  return found;
}
