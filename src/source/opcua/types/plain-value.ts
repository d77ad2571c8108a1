// Decodes the most common values fast: good numbers and Booleans with times (OPC 10000-6, 5.2.2.16 and 5.2.2.17). Pure.
import type { BinaryStream } from "node-opcua-binary-stream";
import { float32, shortestDecimal } from "../../../lib/values/decimal-text.ts";
import type { VariantLike } from "./value.ts";

/** A DataValue. Times are microseconds since 1970; undefined if the server sends none. */
export interface PlainValue {
  readonly value: VariantLike;
  readonly statusCode: typeof good;
  readonly source: number | undefined;
  readonly server: number | undefined;
}

const good = { value: 0, name: "Good" } as const;

/** A plain number in one object. It creates the Variant only on demand. */
export class PlainNumber implements PlainValue {
  readonly #dataType: number;
  readonly #decoded: number;
  readonly source: number | undefined;
  readonly server: number | undefined;

  constructor(dataType: number, decoded: number, source: number | undefined, server: number | undefined) {
    this.#dataType = dataType;
    this.#decoded = decoded;
    this.source = source;
    this.server = server;
  }

  get statusCode(): typeof good {
    return good;
  }

  get value(): VariantLike {
    return { dataType: this.#dataType, arrayType: 0, value: this.#decoded };
  }

  /** The number that `convert` returns. */
  get number(): number {
    return this.#dataType === float ? shortestDecimal(this.#decoded, float32) : this.#decoded;
  }
}

const float = 10;

/** A plain value of the monitored item `handle`. */
export class DecodedChange {
  readonly handle: number;
  readonly value: PlainValue;

  constructor(handle: number, value: PlainValue) {
    this.handle = handle;
    this.value = value;
  }
}

/** Milliseconds from 1601-01-01, the epoch of OPC UA, to 1970. */
const epochMs = 11_644_473_600_000;
/** Readers by the encoding byte of a Variant that holds a scalar: the number of its built-in type. */
const readers: Readonly<Record<number, (stream: BinaryStream) => number | boolean>> = {
  1: (stream) => stream.readUInt8() !== 0,
  2: (stream) => stream.readInt8(),
  3: (stream) => stream.readUInt8(),
  4: (stream) => stream.readInt16(),
  5: (stream) => stream.readUInt16(),
  6: (stream) => stream.readInteger(),
  7: (stream) => stream.readUInt32(),
  10: (stream) => stream.readFloat(),
  11: (stream) => stream.readDouble(),
};

/** Reads a DataValue. Undefined if it is not plain; the stream position is then undefined. */
export function readPlainValue(stream: BinaryStream): PlainValue | undefined {
  const mask = stream.readUInt8();
  const dataType = mask & 1 ? stream.readUInt8() : 0;
  const value = readers[dataType]?.(stream);
  if (value === undefined || ((mask & 2) !== 0 && stream.readUInt32() !== 0)) return undefined;
  const source = mask & 4 ? readMicros(stream) : undefined;
  // Picoseconds only refine the 100 ns of a time and never reach a microsecond.
  if (mask & 16) stream.readUInt16();
  const server = mask & 8 ? readMicros(stream) : undefined;
  if (mask & 32) stream.readUInt16();
  if (typeof value === "number") return new PlainNumber(dataType, value, source, server);
  return { value: { dataType, arrayType: 0, value }, statusCode: good, source, server };
}

/** Reads a DateTime: 64-bit count of 100 ns since 1601. Exact products by halves: 2^32 = 429,496 × 10,000 + 7,296. */
function readMicros(stream: BinaryStream): number {
  const low = stream.readUInt32();
  const high = stream.readUInt32();
  const rest = high * 7_296 + low;
  return (high * 429_496 + Math.floor(rest / 10_000) - epochMs) * 1_000 + Math.floor((rest % 10_000) / 10);
}
