// JSON payloads: one document, or several, separated by newlines or not at all.
import { isInteger } from "../../../lib/values/decimal-text.ts";
import { ElementList, ifReadable, lineCount, PayloadError, sample, utf8 } from "./payload.ts";

/** Parses JSON. Integers that a double cannot represent exactly become bigints. Throws as `JSON.parse` does. */
export function parseJson(text: string): unknown {
  return hasLongNumber(text) ? JSON.parse(text, exactIntegers) : JSON.parse(text);
}

/** The document in `payload`. Throws `PayloadError`. */
export function jsonDocument(payload: Buffer): unknown {
  try {
    return parseJson(utf8(payload));
  } catch (error) {
    if (error instanceof PayloadError) throw error;
    // Other errors, such as for excessive nesting, are also faults of the payload.
    const why = error instanceof SyntaxError ? "is not JSON" : "cannot be read as JSON";
    throw new PayloadError(`${why}: ${sample(payload)}`, { cause: error });
  }
}

/** Fewest digits of a number that may lose precision as a double. */
const longNumber = 16;

/**
 * Whether the text may contain a number that a double cannot represent exactly. A false positive in a string only costs
 * a slower parse. Every run of 16 digits covers a sixteenth character, so only those are checked. A regular expression
 * took as long as the parser.
 */
function hasLongNumber(text: string): boolean {
  for (let at = longNumber - 1; at < text.length; at += longNumber) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let first = at;
    while (first > 0 && isDigit(text.charCodeAt(first - 1))) first--;
    let end = at + 1;
    while (end < text.length && isDigit(text.charCodeAt(end))) end++;
    if (end - first >= longNumber) return true;
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** As `jsonDocument`, but reads `NaN`, `Infinity` and `-Infinity`, which some devices write, as null. */
export function lenientJsonDocument(payload: Buffer): unknown {
  try {
    return jsonDocument(payload);
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    const text = utf8(payload);
    const strict = text.replace(stringOrNoNumber, (token) => (token.startsWith('"') ? token : "null"));
    if (strict === text) throw error;
    return jsonDocument(Buffer.from(strict));
  }
}

/** Matches strings too, so that their content stays unchanged. An unterminated string extends to the end. */
const stringOrNoNumber = /"(?:[^"\\]|\\[^])*(?:"|$)|-?\b(?:NaN|Infinity)\b/g;

function exactIntegers(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && isInteger(source) ? BigInt(source) : value;
}

/** All documents in an array, a `PayloadError` in place of a malformed one. Empty lines are ignored. */
export function jsonLines(payload: Buffer): unknown {
  const text = utf8(payload);
  const documents = documentsIn(text);
  if (documents.length === 0) throw new PayloadError("has no line");
  const list = new ElementList();
  for (const document of documents) {
    const found = ifReadable(() => [jsonDocument(Buffer.from(document))]);
    // An unbalanced bracket makes one document of all that follows. There, a line that begins with a bracket begins the
    // next one.
    if (found) list.add(() => found);
    else
      for (const part of document.split(/\n(?=[{[])/).flatMap(documentsIn))
        list.add(() => [jsonDocument(Buffer.from(part))]);
  }
  return list.all(lineCount(text));
}

/** Splits documents: an object or array ends at its bracket, other values at the end of the line. */
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
    else if (sign === "\n") {
      // A text cannot contain a line break, so that a missing quote affects its line only.
      quoted = false;
      if (depth === 0) cut(at);
    } else if (quoted) continue;
    else if (sign === "{" || sign === "[") {
      if (depth++ === 0) cut(at);
    } else if (sign === "}" || sign === "]") {
      depth = Math.max(0, depth - 1);
      if (depth === 0) cut(at + 1);
    }
  }
  cut(text.length);
  return found;
}
