// Numbers in bytes: what a binary payload, or hex or base64 text in one, holds at an offset. Pure.
import { z } from "zod";
import { float16, float32, shortestDecimal } from "../../../lib/shortest-decimal.ts";
import { PayloadError, sample } from "./payload-error.ts";

/** Widths of the types in bytes. */
const widths = {
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  u24: 3,
  i24: 3,
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
  f16: 2,
  f32: 4,
  f64: 8,
  bit: 1,
} as const;

/** Where a number stands in bytes. */
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
export type BytesField = z.output<typeof bytesField>;

/** The number in `found`, which is a payload or a text in one. Throws `PayloadError` when it is not there. */
export function readStruct(found: unknown, field: BytesField): number | bigint | boolean {
  const value = readWhole(found, field);
  const { bits } = field;
  if (bits === undefined || typeof value === "boolean" || !Number.isInteger(Number(value))) return value;
  const part = (BigInt.asUintN(64, BigInt(value)) >> BigInt(bits.from)) & ((1n << BigInt(bits.count)) - 1n);
  return part <= Number.MAX_SAFE_INTEGER ? Number(part) : part;
}

function readWhole(found: unknown, field: BytesField): number | bigint | boolean {
  const bytes = toBytes(found, field);
  const { at, type, order, bit, length } = field;
  const width = widths[type];
  if (length !== undefined && bytes.length !== length)
    throw new PayloadError(`has ${bytes.length} bytes, not ${length}`);
  if (at + width > bytes.length) throw new PayloadError(`has ${bytes.length} bytes, too few for ${type} at ${at}`);
  const ordered = reorder(bytes.subarray(at, at + width), order);
  const view = new DataView(ordered.buffer, ordered.byteOffset, width);
  switch (type) {
    case "u8":
      return view.getUint8(0);
    case "i8":
      return view.getInt8(0);
    case "u16":
      return view.getUint16(0);
    case "i16":
      return view.getInt16(0);
    case "u24":
      return (view.getUint8(0) << 16) | view.getUint16(1);
    case "i24":
      return (view.getInt8(0) << 16) | view.getUint16(1);
    case "u32":
      return view.getUint32(0);
    case "i32":
      return view.getInt32(0);
    case "u64":
      return view.getBigUint64(0);
    case "i64":
      return view.getBigInt64(0);
    case "f16":
      return shortestDecimal(view.getFloat16(0), float16);
    case "f32":
      return shortestDecimal(view.getFloat32(0), float32);
    case "f64":
      return view.getFloat64(0);
    case "bit":
      return ((view.getUint8(0) >> bit) & 1) === 1;
    default:
      return type satisfies never;
  }
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

/** Most significant byte first. */
function reorder(bytes: Uint8Array, order: BytesField["order"]): Uint8Array {
  const copy = Uint8Array.from(bytes);
  if (order === "dcba") return copy.reverse();
  if (order === "abcd" || bytes.length % 2 === 1) return copy;
  if (order === "cdab") copy.reverse();
  for (let i = 0; i < copy.length; i += 2) copy.set([copy[i + 1] ?? 0, copy[i] ?? 0], i);
  return copy;
}
