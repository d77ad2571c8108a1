// The values that most notifications carry, decoded without a class of the stack for each of their parts: a good number or truth
// value with its times (OPC 10000-6, 5.2.2.16 and 5.2.2.17). Everything else is left to the stack. Pure.
import type { BinaryStream } from "node-opcua-binary-stream";
import type { VariantLike } from "./value.ts";

const good = { value: 0, name: "Good" } as const;
/** Milliseconds from 1601-01-01, where OPC UA begins to count, to 1970. */
const epochMs = 11_644_473_600_000;

export class PlainValue {
  readonly value: VariantLike;
  /** Microseconds since 1970; undefined: the server gives no such time. */
  readonly source: number | undefined;
  readonly server: number | undefined;

  constructor(value: VariantLike, source: number | undefined, server: number | undefined) {
    this.value = value;
    this.source = source;
    this.server = server;
  }

  get statusCode(): typeof good {
    return good;
  }
}

/** Reads a DataValue. Undefined, with the stream anywhere behind its start: it is not a plain one. */
export function readPlainValue(stream: BinaryStream): PlainValue | undefined {
  const mask = stream.readUInt8();
  if ((mask & 1) === 0) return undefined;
  const dataType = stream.readUInt8();
  const value = readScalar(dataType, stream);
  if (value === undefined || ((mask & 2) !== 0 && stream.readUInt32() !== 0)) return undefined;
  const source = mask & 4 ? readMicros(stream) : undefined;
  // Picoseconds count what is below the 100 ns of a time: never a microsecond.
  if (mask & 16) stream.readUInt16();
  const server = mask & 8 ? readMicros(stream) : undefined;
  if (mask & 32) stream.readUInt16();
  return new PlainValue({ dataType, arrayType: 0, value }, source, server);
}

/** Undefined: the encoding byte of the Variant says that it is an array, or of another type. */
function readScalar(encoding: number, stream: BinaryStream): number | boolean | undefined {
  switch (encoding) {
    case 1:
      return stream.readUInt8() !== 0;
    case 2:
      return stream.readInt8();
    case 3:
      return stream.readUInt8();
    case 4:
      return stream.readInt16();
    case 5:
      return stream.readUInt16();
    case 6:
      return stream.readInteger();
    case 7:
      return stream.readUInt32();
    case 10:
      return stream.readFloat();
    case 11:
      return stream.readDouble();
    default:
      return undefined;
  }
}

/** A DateTime: 100 ns since 1601 in 64 bits. In two halves, whose products are exact: 2^32 = 429,496 × 10,000 + 7,296. */
function readMicros(stream: BinaryStream): number {
  const low = stream.readUInt32();
  const high = stream.readUInt32();
  const rest = high * 7_296 + low;
  return (high * 429_496 + Math.floor(rest / 10_000) - epochMs) * 1_000 + Math.floor((rest % 10_000) / 10);
}
