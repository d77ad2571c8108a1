// Finds method and id in the bytes of a request without parsing its params, so that a call can be admitted, queued and
// counted before megabytes become objects. Says nothing about whether the JSON is well-formed.
import { skipSpace, skipString, skipValue } from "../call/json-bytes.ts";

export interface RequestEnvelope {
  readonly method: string | undefined;
  /** Text of the id as it was sent, to be echoed as it came. */
  readonly id: string | undefined;
}

/**
 * Ends at `params` when it has both, as megabytes may follow; who parses the body then sees whether they were repeated
 * behind. Otherwise the last of repeated members counts, as in JSON.parse. Anything but an object has neither member.
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

const quote = 0x22;
const colon = 0x3a;
const comma = 0x2c;
const openBrace = 0x7b;

/** The text of a JSON string, undefined when it is none. */
function textOf(body: Buffer, from: number, end: number): string | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8", from, end));
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
