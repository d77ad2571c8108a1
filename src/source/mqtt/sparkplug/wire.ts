// The required part of the Protocol Buffers wire format, and the interpretation of values by their Sparkplug datatype.
import { DocumentReader } from "../decoders/binary-documents.ts";
import { narrow, type Scalar } from "../decoders/plain-value.ts";
import { type NumberType, numberTypes } from "../decoders/struct.ts";

/** A field: a number for varints and fixed widths, bytes for length-delimited types. */
interface Field {
  readonly number: number;
  /** Integers beyond 2^53 are bigints. Fixed widths are floats, as the shortest decimal: 0.1. */
  readonly value: number | bigint | Uint8Array;
}

/** Yields fields in order. Throws `PayloadError` if the bytes are not a valid message. */
export function* readFields(bytes: Uint8Array): Generator<Field> {
  const reader = new DocumentReader("Sparkplug B", bytes);
  const varint = (): number | bigint => {
    let small = 0;
    for (let i = 0; i < 7; i++) {
      const byte = reader.byte();
      small += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return small;
    }
    let large = BigInt(small);
    for (let i = 7n; i < 10n; i++) {
      const byte = reader.byte();
      large |= BigInt(byte & 0x7f) << (7n * i);
      if (byte < 0x80) return narrow(BigInt.asUintN(64, large));
    }
    throw reader.wrong("a number has too many bytes");
  };
  while (reader.left > 0) {
    const key = Number(varint());
    const kind = key % 8;
    const number = Math.floor(key / 8);
    if (kind === 0) yield { number, value: varint() };
    else if (kind === 1) yield { number, value: reader.number("f64", true) };
    else if (kind === 2) yield { number, value: reader.bytes(varint()) };
    else if (kind === 5) yield { number, value: reader.number("f32", true) };
    else throw reader.wrong("unknown kind of field");
  }
}

/** Width of signed integers by datatype. They are sent as unsigned integers of that width or more. */
const signedBits: Readonly<Record<number, number>> = { 1: 8, 2: 16, 3: 32, 4: 64 };
/** Element types of array datatypes, starting at 22. */
const elementTypes: readonly NumberType[] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"];
const booleanArray = 32;
const timeArray = 34;

/** The number or text. Undefined for files, data sets, templates and arrays. */
export function scalarOf(raw: Scalar | object, datatype: number): Scalar | undefined {
  if (typeof raw === "object") return undefined;
  const bits = signedBits[datatype];
  if (bits === undefined || (typeof raw !== "number" && typeof raw !== "bigint")) return raw;
  return Number.isInteger(Number(raw)) ? narrow(BigInt.asIntN(bits, BigInt(raw))) : raw;
}

/** Most elements of an array, the same limit as for `[*]` in JSON. */
const maxElements = 10_000;

/** Elements of a numeric or boolean array. Undefined: another datatype, or more than 10,000 or `most` elements. */
export function elementsOf(raw: Scalar | object, datatype: number, most: number): readonly Scalar[] | undefined {
  if (!(raw instanceof Uint8Array)) return undefined;
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const bound = Math.min(most, maxElements);
  if (datatype === booleanArray) return booleans(raw, view, bound);
  const type = datatype === timeArray ? "u64" : elementTypes[datatype - 22];
  if (type === undefined) return undefined;
  const { bytes, read } = numberTypes[type];
  if (raw.length / bytes > bound) return undefined;
  return Array.from({ length: Math.floor(raw.length / bytes) }, (_, i) => read(view, i * bytes, true));
}

/** A 32-bit count, followed by the booleans, most significant bit first. */
function booleans(raw: Uint8Array, view: DataView, most: number): readonly boolean[] | undefined {
  if (raw.length < 4) return undefined;
  const count = Math.min(view.getUint32(0, true), (raw.length - 4) * 8);
  if (count > most) return undefined;
  return Array.from({ length: count }, (_, i) => (((raw[4 + (i >> 3)] ?? 0) >> (7 - (i & 7))) & 1) === 1);
}
