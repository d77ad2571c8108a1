// Payloads before decoding: decompression, text, and errors. Payloads with a single value.
import { isUtf8 } from "node:buffer";
import { gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { reasonOf } from "../../../core/errors.ts";
import { isInteger, narrow, parseDecimal } from "../../../lib/values/decimal-text.ts";

/** `message` describes the fault, in lower case, for the `reason` of a reading. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
  /** It may stand for several elements of a list, or for part of one, so that the indices after it are not known. */
  displaces = false;
}

/** The result of `read`, or undefined if it throws `PayloadError`. */
export function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PayloadError) return undefined;
    throw error;
  }
}

/** Each malformed element costs an exception, so that hostile payloads would block the agent for seconds. */
const maxMalformed = 1_000;

/** So that looking up an index in any other list need not look at the elements before it. */
const displacedLists = new WeakSet<readonly unknown[]>();

/** The element at `index`, or the `PayloadError` because of which it may be another one. */
export function atIndex(list: readonly unknown[], index: number): unknown {
  if (!displacedLists.has(list)) return list.at(index);
  const first = index < 0 ? list.length + index : 0;
  const last = index < 0 ? list.length - 1 : index;
  const isDisplacing = (each: unknown, i: number) => i >= first && i <= last && each instanceof PayloadError;
  return list.find(isDisplacing) ?? list.at(index);
}

/**
 * Collects the elements of a payload, such as its lines. A malformed one leaves its `PayloadError` in its place.
 */
export class ElementList {
  readonly #elements: unknown[] = [];
  #malformed = 0;

  /** Adds what `read` returns, or the `PayloadError` that it throws. Rethrows the latter after 1,000 others. */
  add(read: () => readonly unknown[]): void {
    try {
      for (const element of read()) this.#elements.push(element);
    } catch (error) {
      if (!(error instanceof PayloadError) || ++this.#malformed > maxMalformed) throw error;
      this.#elements.push(error);
    }
  }

  /**
   * All elements. Throws the first `PayloadError` if there is nothing else. `expected`: the number of elements if none
   * were malformed. With another number, or if it is unknown, malformed ones displace those after them.
   */
  all(expected: number | undefined): readonly unknown[] {
    const [first] = this.#elements;
    if (first instanceof PayloadError && this.#malformed === this.#elements.length) throw first;
    if (this.#malformed > 0 && this.#elements.length !== expected) {
      displacedLists.add(this.#elements);
      for (const each of this.#elements) if (each instanceof PayloadError) each.displaces = true;
    }
    return this.#elements;
  }
}

/** Number of lines that are not empty. */
export function lineCount(text: string): number {
  return text.match(/\S[^\n]*/g)?.length ?? 0;
}

/** Printable start of a payload, for messages. */
export function sample(payload: Buffer): string {
  const text = payload.toString("latin1", 0, 60).replaceAll(/[^\x20-\x7e]/g, "·");
  return payload.length > 60 ? `${text}…` : text;
}

/** `payload` as text, without byte order mark and trailing zero bytes. Throws `PayloadError` if it is not UTF-8. */
export function utf8(payload: Buffer): string {
  if (!isUtf8(payload)) throw new PayloadError("is not UTF-8");
  let end = payload.length;
  while (end > 0 && payload[end - 1] === 0) end--;
  const text = payload.toString("utf8", 0, end);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Compression formats. `auto` detects them by the first bytes. */
export const compressions = ["none", "auto", "gzip", "zlib", "deflate", "zstd"] as const;
export type Compression = (typeof compressions)[number];

const inflate = { gzip: gunzipSync, zlib: inflateSync, deflate: inflateRawSync, zstd: zstdDecompressSync } as const;

/** Decompresses a payload. Throws `PayloadError` if it is invalid or exceeds `maxBytes` decompressed. */
export function decompress(payload: Buffer, compression: Compression, maxBytes: number): Buffer {
  const way = compression === "auto" ? byMagic(payload) : compression;
  if (way === "none") return payload;
  try {
    return inflate[way](payload, { maxOutputLength: maxBytes });
  } catch (error) {
    const tooLarge =
      error instanceof RangeError ||
      (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE");
    const text = reasonOf(error);
    throw new PayloadError(tooLarge ? `is larger than ${maxBytes} bytes when inflated` : `is not ${way}: ${text}`, {
      cause: error,
    });
  }
}

function byMagic(payload: Buffer): Exclude<Compression, "auto"> {
  const start = payload.subarray(0, 4).toString("hex");
  if (start.startsWith("1f8b")) return "gzip";
  if (start === "28b52ffd") return "zstd";
  return /^78(01|5e|9c|da)/.test(start) ? "zlib" : "none";
}

// A payload with a single value, as simple devices send it: 21.5, 21,5 °C, true, ON.

export type Scalar = number | bigint | boolean | string;

export function isScalar(value: unknown): value is Scalar {
  return value !== null && value !== undefined && typeof value !== "object";
}

/** A number, a boolean for `true` and `false`, otherwise the text without surrounding quotes. */
export function bareValue(payload: Buffer): Scalar {
  const text = plainText(payload);
  const number = parseDecimal(text);
  if (number !== undefined) return number;
  if (text === "true") return true;
  if (text === "false") return false;
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** The trimmed text, for words that `values` maps to numbers. */
export function plainText(payload: Buffer): string {
  return utf8(payload).trim();
}

/** Matches a number with an optional unit, as in `21.5 °C`. */
// Escaped, since a pure ASCII bundle takes half the memory.
const withUnit = /^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(?:\s*[A-Za-z%\u00b0\u00b5\u03a9\u2030][^\d]*)?$/u;

/**
 * A number with a decimal comma, with a point in its place; any other text unchanged. An error for `1.234`, which is 1234
 * where the decimal sign is a comma, but may be meant as less than 2.
 */
export function withPoint(text: string): string | PayloadError {
  if (/^[+-]?[1-9]\d{0,2}\.\d{3}$/.test(text))
    return new PayloadError(`has a point where the decimal sign is a comma: ${text}`);
  return /^[+-]?\d*,\d+(?:[eE][+-]?\d+)?$/.test(text) ? text.replace(",", ".") : text;
}

/** Reads decimal numbers, optionally with a unit, and hexadecimal ones. Throws `PayloadError` otherwise. */
export function numberDecoder(decimal: "." | ","): (payload: Buffer) => number | bigint {
  return (payload) => {
    const text = plainText(payload);
    if (/^0x[0-9a-f]{1,16}$/i.test(text)) return narrow(BigInt(text));
    const digits = withUnit.exec(text)?.[1];
    const plain = digits !== undefined && decimal === "," ? withPoint(digits) : digits;
    if (plain instanceof PayloadError) throw plain;
    const value = plain === undefined ? undefined : parseDecimal(plain);
    if (value === undefined) throw new PayloadError(`is not a number: ${sample(payload)}`);
    return value;
  };
}

// JSON payloads: one document, or several, separated by newlines or not at all.

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
