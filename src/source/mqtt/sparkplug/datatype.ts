// What a Sparkplug value is once its datatype is known. Pure.
import { float32, shortestDecimal } from "../../../lib/shortest-decimal.ts";

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
