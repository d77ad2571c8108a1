// Decoders for CBOR (RFC 8949) and MessagePack. Byte strings and extensions remain bytes, for `bytes` of a tag. Big
// numbers become integers, MessagePack timestamps nanoseconds since 1970. Other tags are ignored.
//
// No library: `cborg` 5.1.6 rejects texts of indefinite length and keys that are not texts, `@msgpack/msgpack` 3.1.3
// allocates arrays of any claimed length. Both lose `__proto__`, accept invalid UTF-8, and return a float32 as a double,
// whose shortest decimal is another number.
import { narrow } from "../../../lib/values/decimal-text.ts";
import { scalarText } from "./json-path.ts";
import { PayloadError } from "./payload.ts";
import { type NumberType, numberTypes } from "./struct.ts";

const maxDepth = 64;
const unsigned = ["u8", "u16", "u32", "u64"] as const;
const signed = ["i8", "i16", "i32", "i64"] as const;
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads bytes from start to end. Throws `PayloadError` instead of reading beyond their end. */
export class DocumentReader {
  readonly #format: string;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #depth = 0;

  constructor(format: string, bytes: Uint8Array) {
    this.#format = format;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The result of `item`, which must consume all bytes. */
  whole(item: (reader: DocumentReader) => unknown): unknown {
    const document = item(this);
    if (this.left > 0) throw this.wrong(`${this.left} bytes behind its end`);
    return document;
  }

  /** Bytes that are not read yet. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** The error for bytes that are not of this format. */
  wrong(why: string): PayloadError {
    return new PayloadError(`is not ${this.#format}: ${why}`);
  }

  byte(): number {
    return this.#view.getUint8(this.#take(1));
  }

  /** Skips `byte` if it comes next. Returns whether it did. */
  skips(byte: number): boolean {
    if (this.#bytes[this.#at] !== byte) return false;
    this.#at++;
    return true;
  }

  /** Reads a number. Undefined `type`: invalid, throws. */
  number(type: NumberType | undefined, isLittleEndian = false): number | bigint {
    if (type === undefined) throw this.wrong("a length that means nothing");
    const { bytes, read } = numberTypes[type];
    const value = read(this.#view, this.#take(bytes), isLittleEndian);
    return typeof value === "bigint" ? narrow(value) : value;
  }

  /** Returns a view, not a copy. */
  bytes(length: number | bigint): Uint8Array {
    const at = this.#take(Number(length));
    return this.#bytes.subarray(at, this.#at);
  }

  text(length: number | bigint): string {
    const bytes = this.bytes(length);
    try {
      return strictUtf8.decode(bytes);
    } catch {
      throw this.wrong("a text that is not UTF-8");
    }
  }

  /** Reads array elements up to `length`, or until `ends` returns true. */
  list<T>(length: number | bigint, next: () => T, ends: () => boolean = () => false): T[] {
    if (++this.#depth > maxDepth) throw new PayloadError(`is nested deeper than ${maxDepth} levels`);
    const elements: T[] = [];
    while (elements.length < length && !ends()) elements.push(next());
    this.#depth--;
    return elements;
  }

  /** Reads map members. Scalar keys become text. */
  map(length: number | bigint, next: () => unknown, ends?: () => boolean): Record<string, unknown> {
    const pairs = this.list(length, () => [this.#key(next()), next()] as const, ends);
    return Object.fromEntries(pairs);
  }

  #key(key: unknown): string {
    const text = scalarText(key);
    if (text === undefined) throw this.wrong("a key that is not text");
    return text;
  }

  #take(count: number): number {
    if (count > this.left) throw this.wrong("it ends in the middle");
    const at = this.#at;
    this.#at += count;
    return at;
  }
}

const indefinite = 31;
const breakByte = 0xff;
/** Largest big number in bytes. Measured values are smaller. */
const maxBignum = 16;

/** Decodes a document. Throws `PayloadError`. */
export function cborDocument(payload: Uint8Array): unknown {
  return new DocumentReader("CBOR", payload).whole(cborItem);
}

function cborItem(reader: DocumentReader): unknown {
  const initial = reader.byte();
  const kind = initial >> 5;
  const info = initial & 0x1f;
  if (kind === 7) return simple(reader, info);
  const endless = info === indefinite;
  if (endless && (kind === 0 || kind === 1 || kind === 6)) throw reader.wrong("a number without end");
  const length = endless ? Number.POSITIVE_INFINITY : info < 24 ? info : reader.number(unsigned[info - 24]);
  const next = () => cborItem(reader);
  const ends = () => endless && reader.skips(breakByte);
  /** Chunks of a text or byte string of indefinite length. */
  const parts = <T>(is: (found: unknown) => found is T): T[] => {
    const all = reader.list(length, next, ends);
    if (!all.every(is)) throw reader.wrong("something else among the parts of a text or of bytes");
    return all;
  };
  switch (kind) {
    case 0:
      return length;
    case 1:
      return narrow(-1n - BigInt(length));
    case 2:
      return endless ? Buffer.concat(parts((part) => part instanceof Uint8Array)) : reader.bytes(length);
    case 3:
      return endless ? parts((part) => typeof part === "string").join("") : reader.text(length);
    case 4:
      return reader.list(length, next, ends);
    case 5:
      return reader.map(length, next, ends);
    default:
      return tagged(reader, length);
  }
}

function simple(reader: DocumentReader, info: number): unknown {
  if (info === 20 || info === 21) return info === 21;
  if (info === 22) return null;
  if (info === 25) return reader.number("f16");
  if (info === 26) return reader.number("f32");
  if (info === 27) return reader.number("f64");
  if (info === 24) reader.byte();
  else if (info > 23) throw reader.wrong("an end where nothing began");
  // "Undefined", and codes without a definition.
  return undefined;
}

function tagged(reader: DocumentReader, tag: number | bigint): unknown {
  const [value] = reader.list(1, () => cborItem(reader));
  if ((tag !== 2 && tag !== 3) || !(value instanceof Uint8Array)) return value;
  if (value.length > maxBignum) throw reader.wrong(`a number of ${value.length} bytes`);
  const size = BigInt(`0x0${Buffer.from(value).toString("hex")}`);
  return narrow(tag === 2 ? size : -1n - size);
}

/** MessagePack extension type of timestamps. */
const timestamp = -1;

/** Decodes a document. Throws `PayloadError`. */
export function messagePackDocument(payload: Uint8Array): unknown {
  return new DocumentReader("MessagePack", payload).whole(packItem);
}

function packItem(reader: DocumentReader): unknown {
  const code = reader.byte();
  const next = () => packItem(reader);
  /** Reads an unsigned number of 1, 2, 4 or 8 bytes; `first` is the first code of the type. */
  const size = (first: number) => reader.number(unsigned[code - first]);
  if (code < 0x80) return code;
  if (code < 0x90) return reader.map(code & 0x0f, next);
  if (code < 0xa0) return reader.list(code & 0x0f, next);
  if (code < 0xc0) return reader.text(code & 0x1f);
  if (code === 0xc0) return null;
  if (code === 0xc1) throw reader.wrong("a type that means nothing");
  if (code <= 0xc3) return code === 0xc3;
  if (code <= 0xc6) return reader.bytes(size(0xc4));
  if (code <= 0xc9) return extension(reader, size(0xc7));
  if (code <= 0xcb) return reader.number(code === 0xca ? "f32" : "f64");
  if (code <= 0xcf) return size(0xcc);
  if (code <= 0xd3) return reader.number(signed[code - 0xd0]);
  if (code <= 0xd8) return extension(reader, 2 ** (code - 0xd4));
  if (code <= 0xdb) return reader.text(size(0xd9));
  // Arrays and maps have no variant with a one-byte length.
  if (code <= 0xdd) return reader.list(size(0xdb), next);
  if (code <= 0xdf) return reader.map(size(0xdd), next);
  return code - 0x1_00;
}

function extension(reader: DocumentReader, length: number | bigint): unknown {
  if (reader.number("i8") !== timestamp) return reader.bytes(length);
  if (length === 4) return BigInt(reader.number("u32")) * 1_000_000_000n;
  if (length === 8) {
    const both = BigInt(reader.number("u64"));
    return (both & 0x3_ffff_ffffn) * 1_000_000_000n + (both >> 34n);
  }
  if (length !== 12) throw reader.wrong(`a time of ${length} bytes`);
  const nanoseconds = BigInt(reader.number("u32"));
  return BigInt(reader.number("i64")) * 1_000_000_000n + nanoseconds;
}
