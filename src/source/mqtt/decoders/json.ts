// JSON payloads: one document, or documents one after the other, one a line or without anything between them.
import { PayloadError, sample, utf8 } from "./payload.ts";
import { isInteger } from "./plain-value.ts";

/** What `text` says. Integers that a double cannot hold come as bigints. Throws as `JSON.parse` does. */
export function parseJson(text: string): unknown {
  return hasLongNumber(text) ? JSON.parse(text, exactIntegers) : JSON.parse(text);
}

/** The document in `payload`, as `parseJson` reads it. */
export function jsonDocument(payload: Buffer): unknown {
  try {
    return parseJson(utf8(payload));
  } catch (error) {
    if (error instanceof PayloadError) throw error;
    // Anything else, as a document nested too deep for the reviver, must not pass for a fault of ours either.
    const why = error instanceof SyntaxError ? "is not JSON" : "cannot be read as JSON";
    throw new PayloadError(`${why}: ${sample(payload)}`, { cause: error });
  }
}

/** Digits of the shortest number that may lose some in a double. */
const longNumber = 16;

/**
 * Whether there may be a number that a double cannot hold; what looks like one but is text costs a slower parse. A run
 * of that many digits covers every sixteenth place, so only those are looked at: a regular expression took as long as
 * the parser itself.
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

/** As `jsonDocument`, but `NaN`, `Infinity` and `-Infinity`, which some devices write, are null. */
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

/** Strings, so that nothing in them is changed; one without an end goes on to the end of the text. */
const stringOrNoNumber = /"(?:[^"\\]|\\[^])*(?:"|$)|-?\b(?:NaN|Infinity)\b/g;

function exactIntegers(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && isInteger(source) ? BigInt(source) : value;
}

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
