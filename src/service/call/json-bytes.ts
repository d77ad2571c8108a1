// Skips JSON values in bytes without parsing them, and finds the method and id of a request.
import { attempt } from "../../lib/flow/attempt.ts";

export const quote = 0x22;
const backslash = 0x5c;
export const comma = 0x2c;
export const colon = 0x3a;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;

/** Position of the first byte from `from` on that is not white space. */
export function skipSpace(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at++;
  return at;
}

/** Position after the string at `from`; beyond the body if the string is unterminated. */
function skipString(body: Buffer, from: number): number {
  let at = from + 1;
  for (;;) {
    const end = body.indexOf(quote, at);
    if (end < 0) return body.length + 1;
    let escapes = 0;
    while (body[end - 1 - escapes] === backslash) escapes++;
    if (escapes % 2 === 0) return end + 1;
    at = end + 1;
  }
}

/** Position after the value at `from`; beyond the body if it is unterminated. Does not check the syntax. */
export function skipValue(body: Buffer, from: number): number {
  const first = body[from];
  if (first === quote) return skipString(body, from);
  let at = from;
  let depth = 0;
  while (at < body.length) {
    const byte = body[at];
    if (byte === quote) {
      at = skipString(body, at);
      continue;
    }
    if (byte === openBrace || byte === openBracket) depth++;
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === comma || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09))
      return at;
    at++;
  }
  return depth === 0 ? at : body.length + 1;
}

export interface RequestEnvelope {
  readonly method: string | undefined;
  /** The id as sent, to be echoed unchanged. */
  readonly id: string | undefined;
}

/**
 * Finds the method and id of a request before it is parsed, without checking the JSON syntax. Stops at `params` once it
 * has both, since megabytes may follow; the parser detects later repetitions. Otherwise the last of repeated members
 * counts. A value that is not an object has neither.
 */
export function scanEnvelope(body: Buffer): RequestEnvelope {
  let method: string | undefined;
  let id: string | undefined;
  let at = skipSpace(body, 0);
  if (body[at] !== openBrace) return { method, id };
  at++;
  for (;;) {
    at = skipSpace(body, at);
    if (body[at] !== quote) break;
    const keyEnd = skipString(body, at);
    const key = textOf(body, at, keyEnd);
    at = skipSpace(body, keyEnd);
    if (body[at] !== colon) break;
    if (key === "params" && method !== undefined && id !== undefined) break;
    at = skipSpace(body, at + 1);
    const end = skipValue(body, at);
    if (end > body.length) break;
    if (key === "method") method = textOf(body, at, end);
    else if (key === "id") id = body.toString("utf8", at, end);
    at = skipSpace(body, end);
    if (body[at] !== comma) break;
    at++;
  }
  return { method, id };
}

/** The text of a JSON string. Undefined: not a string. */
function textOf(body: Buffer, from: number, end: number): string | undefined {
  const value: unknown = attempt(() => JSON.parse(body.toString("utf8", from, end)));
  return typeof value === "string" ? value : undefined;
}
