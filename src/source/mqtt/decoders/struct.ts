// Numbers at an offset in binary payloads, or in hex or base64 texts.
import { z } from "zod";
import { float16, float32, narrow, shortestDecimal } from "../../../lib/values/decimal-text.ts";
import { PayloadError, sample } from "./payload.ts";

interface NumberInBytes {
  readonly bytes: number;
  readonly read: (view: DataView, at: number, littleEndian: boolean) => number | bigint;
}

/** Number types. Short floats become the shortest decimal that rounds to the same float. */
export const numberTypes = {
  u8: { bytes: 1, read: (view, at) => view.getUint8(at) },
  i8: { bytes: 1, read: (view, at) => view.getInt8(at) },
  u16: { bytes: 2, read: (view, at, little) => view.getUint16(at, little) },
  i16: { bytes: 2, read: (view, at, little) => view.getInt16(at, little) },
  u32: { bytes: 4, read: (view, at, little) => view.getUint32(at, little) },
  i32: { bytes: 4, read: (view, at, little) => view.getInt32(at, little) },
  u64: { bytes: 8, read: (view, at, little) => view.getBigUint64(at, little) },
  i64: { bytes: 8, read: (view, at, little) => view.getBigInt64(at, little) },
  f16: { bytes: 2, read: (view, at, little) => shortestDecimal(view.getFloat16(at, little), float16) },
  f32: { bytes: 4, read: (view, at, little) => shortestDecimal(view.getFloat32(at, little), float32) },
  f64: { bytes: 8, read: (view, at, little) => view.getFloat64(at, little) },
} as const satisfies Record<string, NumberInBytes>;
export type NumberType = keyof typeof numberTypes;

const structTypes: Readonly<Record<NumberType | "u24" | "i24" | "bit", NumberInBytes>> = {
  ...numberTypes,
  u24: { bytes: 3, read: (view, at) => (view.getUint8(at) << 16) | view.getUint16(at + 1) },
  i24: { bytes: 3, read: (view, at) => (view.getInt8(at) << 16) | view.getUint16(at + 1) },
  bit: numberTypes.u8,
};

export const bytesField = z.strictObject({
  from: z
    .enum(["raw", "hex", "base64"])
    .optional()
    .describe("How the bytes are written. Default: hex where value leads to a text, else raw."),
  at: z.int().min(0).default(0).describe("Offset of the first byte, from 0."),
  type: z.enum(["u8", "i8", "u16", "i16", "u24", "i24", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bit"]),
  order: z
    .enum(["abcd", "cdab", "badc", "dcba"])
    .default("abcd")
    .describe("Order of the bytes: abcd most significant first, dcba least significant first, cdab and badc swapped."),
  bit: z.int().min(0).max(7).default(0).describe("Of type bit: which one, 0 is the least significant."),
  bits: z
    .strictObject({ from: z.int().min(0).max(63), count: z.int().min(1).max(63) })
    .optional()
    .describe("Some bits of an integer, as a number without sign: the least significant one and how many."),
  length: z.int().min(1).optional().describe("How many bytes there must be in all; any other number is malformed."),
});
type BytesField = z.output<typeof bytesField>;

/** The number in `found`, a payload or a text in it. Throws `PayloadError` if it is missing or invalid. */
export function readStruct(found: unknown, field: BytesField): number | bigint | boolean {
  const { at, type, order, bit, bits, length } = field;
  const bytes = toBytes(found, field);
  const { bytes: width, read } = structTypes[type];
  if (length !== undefined && bytes.length !== length)
    throw new PayloadError(`has ${bytes.length} bytes, not ${length}`);
  if (at + width > bytes.length) throw new PayloadError(`has ${bytes.length} bytes, too few for ${type} at ${at}`);
  const ordered = reorder(bytes.subarray(at, at + width), order);
  const value = read(new DataView(ordered.buffer, ordered.byteOffset, width), 0, false);
  if (type === "bit") return ((Number(value) >> bit) & 1) === 1;
  if (bits === undefined || !Number.isInteger(Number(value))) return value;
  return narrow((BigInt.asUintN(64, BigInt(value)) >> BigInt(bits.from)) & ((1n << BigInt(bits.count)) - 1n));
}

function toBytes(found: unknown, { from }: BytesField): Uint8Array {
  if (found instanceof Uint8Array) {
    if (from === undefined || from === "raw") return found;
    return fromText(Buffer.from(found).toString("latin1"), from);
  }
  if (typeof found !== "string") throw new PayloadError("has no text where bytes should be");
  return fromText(found, from === "base64" ? "base64" : "hex");
}

function fromText(text: string, encoding: "hex" | "base64"): Uint8Array {
  const compact = text.replaceAll(/[\s:-]/g, encoding === "hex" ? "" : "$&").trim();
  const valid = encoding === "hex" ? /^(?:0x)?(?:[0-9a-f]{2})*$/i : /^[A-Za-z0-9+/_-]*={0,2}$/;
  if (!valid.test(compact)) throw new PayloadError(`is not ${encoding}: ${sample(Buffer.from(text))}`);
  return Buffer.from(compact.replace(/^0x/i, ""), encoding);
}

/** Returns the bytes with the most significant one first. */
function reorder(bytes: Uint8Array, order: BytesField["order"]): Uint8Array {
  const copy = Uint8Array.from(bytes);
  if (order === "dcba") return copy.reverse();
  if (order === "abcd" || bytes.length % 2 === 1) return copy;
  if (order === "cdab") copy.reverse();
  for (let i = 0; i < copy.length; i += 2) copy.set([copy[i + 1] ?? 0, copy[i] ?? 0], i);
  return copy;
}
