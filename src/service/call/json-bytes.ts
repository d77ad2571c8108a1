// Steps over JSON in bytes without parsing it.

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** Position of the first byte from `from` on that is no white space. */
export function skipSpace(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at++;
  return at;
}

/** Position after the string that begins at `from`; beyond the body where it does not end. */
export function skipString(body: Buffer, from: number): number {
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

/** Position after the value that begins at `from`; beyond the body where it does not end. Says nothing about its syntax. */
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
