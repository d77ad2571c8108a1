// Documents in CBOR (RFC 8949). Bytes stay bytes, for `bytes` of a tag; big numbers are integers; other tags say nothing
// that a value could not do without.
import { DocumentReader, narrow } from "./byte-reader.ts";

const indefinite = 31;
const breakByte = 0xff;
/** Bytes of a number that is no double's: more is no measured value. */
const maxBignum = 16;

/** The document. Throws `PayloadError`. */
export function cborDocument(payload: Uint8Array): unknown {
  const reader = new DocumentReader("CBOR", payload);
  const document = item(reader, reader.unsigned(1));
  if (reader.left > 0) throw reader.wrong(`${reader.left} bytes behind its end`);
  return document;
}

/** What begins with `initial`, which has been read. */
function item(reader: DocumentReader, initial: number | bigint): unknown {
  const kind = Number(initial) >> 5;
  const info = Number(initial) & 0x1f;
  if (kind === 7) return simple(reader, info);
  const endless = info === indefinite;
  if (endless && (kind === 0 || kind === 1 || kind === 6)) throw reader.wrong("a number without end");
  const length = endless ? Number.POSITIVE_INFINITY : argument(reader, info);
  // Each element tells by its first byte whether it is one.
  let first: number | bigint = 0;
  const next = () => item(reader, endless ? first : reader.unsigned(1));
  const ends = () => {
    if (!endless) return false;
    first = reader.unsigned(1);
    return Number(first) === breakByte;
  };
  switch (kind) {
    case 0:
      return length;
    case 1:
      return narrow(-1n - BigInt(length));
    case 2:
      return endless ? Buffer.concat(parts(reader, isBytes, next, ends)) : reader.bytes(length);
    case 3:
      return endless ? parts(reader, isText, next, ends).join("") : reader.text(length);
    case 4:
      return reader.list(length, next, ends);
    case 5:
      return reader.map(length, pairs(reader, next, endless), ends);
    default:
      return tagged(reader, length);
  }
}

/** In a map without end only keys tell whether it goes on. */
function pairs(reader: DocumentReader, next: () => unknown, endless: boolean): () => unknown {
  let isKey = false;
  return () => {
    isKey = !isKey;
    return isKey || !endless ? next() : item(reader, reader.unsigned(1));
  };
}

/** Of a text, or bytes, whose length was not known at its beginning. */
function parts<T>(
  reader: DocumentReader,
  is: (found: unknown) => found is T,
  next: () => unknown,
  ends: () => boolean,
): T[] {
  const one = () => {
    const found = next();
    if (is(found)) return found;
    throw reader.wrong("something else among the parts of a text or of bytes");
  };
  return reader.list(Number.POSITIVE_INFINITY, one, ends);
}

function isBytes(found: unknown): found is Uint8Array {
  return found instanceof Uint8Array;
}

function isText(found: unknown): found is string {
  return typeof found === "string";
}

function argument(reader: DocumentReader, info: number): number | bigint {
  if (info < 24) return info;
  if (info === 24) return reader.unsigned(1);
  if (info === 25) return reader.unsigned(2);
  if (info === 26) return reader.unsigned(4);
  if (info === 27) return reader.unsigned(8);
  throw reader.wrong("a length that means nothing");
}

function simple(reader: DocumentReader, info: number): unknown {
  if (info === 20 || info === 21) return info === 21;
  if (info === 22) return null;
  if (info === 25) return reader.float(2);
  if (info === 26) return reader.float(4);
  if (info === 27) return reader.float(8);
  if (info === 24) reader.unsigned(1);
  else if (info > 23) throw reader.wrong("an end where nothing began");
  // "Undefined", and what nobody has defined.
  return undefined;
}

function tagged(reader: DocumentReader, tag: number | bigint): unknown {
  const [value] = reader.list(1, () => item(reader, reader.unsigned(1)));
  const sign = tag === 2 ? 1n : tag === 3 ? -1n : 0n;
  if (sign === 0n || !(value instanceof Uint8Array)) return value;
  if (value.length > maxBignum) throw reader.wrong(`a number of ${value.length} bytes`);
  const size = BigInt(`0x0${Buffer.from(value).toString("hex")}`);
  return narrow(sign === 1n ? size : -1n - size);
}
