// How Sparkplug's values travel: the wire format of Protocol Buffers, as much of it as is needed, and what a value is once its
// datatype is known. Pure.
import { float32, shortestDecimal } from "../../../lib/shortest-decimal.ts";
import { PayloadError } from "../decoders/payload.ts";

/** One field as it stands in a message: a number for varints and fixed widths, bytes for everything with a length. */
interface Field {
  readonly number: number;
  /** Integers beyond 2^53 come as bigints; of the fixed widths the raw bits. */
  readonly value: number | bigint | Uint8Array;
}

/** Fields in their order. Throws `PayloadError` when the bytes are no message. */
export function* readFields(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const take = (count: number) => {
    const start = at;
    at += count;
    if (at > bytes.length) throw new PayloadError("is not Sparkplug B: it ends in the middle");
    return start;
  };
  const varint = (): number | bigint => {
    let small = 0;
    for (let i = 0; i < 7; i++) {
      const byte = bytes[take(1)] ?? 0;
      small += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return small;
    }
    let large = BigInt(small);
    for (let i = 7n; i < 10n; i++) {
      const byte = bytes[take(1)] ?? 0;
      large |= BigInt(byte & 0x7f) << (7n * i);
      if (byte < 0x80) return large <= Number.MAX_SAFE_INTEGER ? Number(large) : BigInt.asUintN(64, large);
    }
    throw new PayloadError("is not Sparkplug B: a number has too many bytes");
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const number = Math.floor(key / 8);
    switch (key % 8) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        yield { number, value: view.getBigUint64(take(8), true) };
        break;
      case 2: {
        const length = Number(varint());
        const start = take(length);
        yield { number, value: bytes.subarray(start, start + length) };
        break;
      }
      case 5:
        yield { number, value: view.getUint32(take(4), true) };
        break;
      default:
        throw new PayloadError("is not Sparkplug B: unknown kind of field");
    }
  }
}

/** The bits of a 32-bit float as the number that was meant: 0.1, not 0.10000000149011612. */
export function float32OfBits(bits: number): number {
  scratch.setUint32(0, bits);
  return shortestDecimal(scratch.getFloat32(0), float32);
}

/** The bits of a 64-bit float as a number. */
export function float64OfBits(bits: bigint): number {
  scratch.setBigUint64(0, bits);
  return scratch.getFloat64(0);
}

// Written and read within one call.
const scratch = new DataView(new ArrayBuffer(8));

export type Scalar = number | bigint | boolean | string;

/** Bits of the signed integers, by datatype. They travel as unsigned ones, of their own width or of a wider one. */
const signedBits: Readonly<Record<number, number>> = { 1: 8, 2: 16, 3: 32, 4: 64 };
/** Bytes of an element, by the datatype of an array. */
const elementBytes: Readonly<Record<number, number>> = {
  22: 1,
  23: 2,
  24: 4,
  25: 8,
  26: 1,
  27: 2,
  28: 4,
  29: 8,
  30: 4,
  31: 8,
  34: 8,
};
const booleanArray = 32;

/** The number or text; undefined for what is none: files, data sets, templates, arrays. */
export function scalarOf(raw: Scalar | object, datatype: number): Scalar | undefined {
  if (typeof raw === "object") return undefined;
  const bits = signedBits[datatype];
  if (bits === undefined || (typeof raw !== "number" && typeof raw !== "bigint")) return raw;
  if (!Number.isInteger(Number(raw))) return raw;
  const signed = BigInt.asIntN(bits, BigInt(raw));
  return signed >= Number.MIN_SAFE_INTEGER && signed <= Number.MAX_SAFE_INTEGER ? Number(signed) : signed;
}

/** Elements of one array; as many values as `[*]` may find in JSON. */
const maxElements = 10_000;

/**
 * The elements of an array of numbers or booleans; undefined where `datatype` is none of those, or they are too many: more
 * than 10,000, or than `most`.
 */
export function elementsOf(raw: Scalar | object, datatype: number, most: number): readonly Scalar[] | undefined {
  if (!(raw instanceof Uint8Array)) return undefined;
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const bound = Math.min(most, maxElements);
  if (datatype === booleanArray) return booleans(raw, view, bound);
  const width = elementBytes[datatype];
  if (width === undefined || raw.length / width > bound) return undefined;
  return Array.from({ length: Math.floor(raw.length / width) }, (_, i) => element(view, i * width, datatype));
}

function element(view: DataView, at: number, datatype: number): Scalar {
  switch (datatype) {
    case 22:
      return view.getInt8(at);
    case 23:
      return view.getInt16(at, true);
    case 24:
      return view.getInt32(at, true);
    case 25:
      return view.getBigInt64(at, true);
    case 26:
      return view.getUint8(at);
    case 27:
      return view.getUint16(at, true);
    case 28:
      return view.getUint32(at, true);
    case 30:
      return shortestDecimal(view.getFloat32(at, true), float32);
    case 31:
      return view.getFloat64(at, true);
    default:
      return view.getBigUint64(at, true);
  }
}

/** A count of 32 bits, then the booleans from the most significant bit on. */
function booleans(raw: Uint8Array, view: DataView, most: number): readonly boolean[] | undefined {
  if (raw.length < 4) return undefined;
  const count = Math.min(view.getUint32(0, true), (raw.length - 4) * 8);
  if (count > most) return undefined;
  return Array.from({ length: count }, (_, i) => (((raw[4 + (i >> 3)] ?? 0) >> (7 - (i & 7))) & 1) === 1);
}
