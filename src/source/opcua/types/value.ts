// Converts a Variant (OPC 10000-6, 5.1) to a value of the agent: one number, string or Boolean. Pure.
import { float32, shortestDecimal } from "../../../lib/values/decimal-text.ts";

export interface VariantLike {
  /** Number of the built-in type; 0 for Null. */
  readonly dataType: number;
  /** 0: scalar, 1: array, 2: matrix. */
  readonly arrayType: number;
  readonly value: unknown;
  /** Lengths of a matrix. Its value holds all elements in row-major order. */
  readonly dimensions?: readonly number[] | null;
}

export type Value = number | bigint | boolean | string;
export type Converted = { readonly value: Value } | { readonly reason: string };

const names =
  "Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString XmlElement NodeId " +
  "ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue Variant DiagnosticInfo";
/** Indexed by the number of the built-in type (OPC 10000-6, 5.1.2). */
export const builtInNames: readonly string[] = ["Null", ...names.split(" ")];
export const builtInTypes: Readonly<Record<string, number>> = Object.fromEntries(
  builtInNames.map((name, number) => [name, number]),
);
export const builtIn = { int32: 6, structure: 22, dataValue: 23, variant: 24 } as const;

/** The value of a Variant that the stack cannot decode. */
export class Undecoded {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** The value of a node that cannot be received: any answer with it fails. */
export class Unreadable extends Undecoded {}

const noValue = "no value";
const neverSet = "no time: it was never set";
/** Reasons that end when the device provides a value. */
export const transient: readonly string[] = [noValue, neverSet];

/** Guid. Up to this type, `scalar` returns a number, Boolean or string unchanged unless it has a case for the type. */
const lastPlain = 14;
/** Earliest valid time: servers use 1601-01-01 or 0001-01-01 for "never". */
const firstTime = Date.UTC(1900, 0, 1);

/** Converts the value, or the element at `index`; else gives the reason why it cannot be stored. */
export function convert(variant: VariantLike | null | undefined, index?: readonly number[]): Converted {
  const one = element(variant, index);
  if ("reason" in one) return one;
  const value = scalar(one.dataType, one.value);
  if (value !== undefined) return { value };
  if (one.dataType === builtInTypes["DateTime"] && one.value instanceof Date) return { reason: neverSet };
  if (one.dataType === builtIn.structure) return { reason: "a structure cannot be stored; name a field of it" };
  if (member(one.value, "text") === null) return { reason: noValue };
  return { reason: `a ${builtInNames[one.dataType] ?? `value of the unknown type ${one.dataType}`} cannot be stored` };
}

/** The scalar in a Variant, or the element at `index`; else the reason why there is none. */
export function element(
  variant: VariantLike | null | undefined,
  index?: readonly number[],
): VariantLike | { readonly reason: string } {
  if (!variant || variant.dataType === 0 || variant.value === null || variant.value === undefined)
    return { reason: noValue };
  if (variant.value instanceof Undecoded) return { reason: variant.value.reason };
  const { dataType, arrayType } = variant;
  if (index === undefined) return arrayType === 0 ? variant : { reason: "an array, not one value; give an index" };
  const dimensions = arrayType === 2 ? (variant.dimensions?.length ?? 0) : arrayType;
  if (index.length !== dimensions)
    return { reason: `not an array of ${index.length === 1 ? "one dimension" : `${index.length} dimensions`}` };
  const value = elementOf(variant.value, place(index, variant.dimensions ?? []));
  if (value === undefined) return { reason: `the array has no element ${index.join()}` };
  // In an array of Variants, each has its own type.
  if (isVariant(value)) return value;
  return value === null ? { reason: noValue } : { dataType, arrayType: 0, value };
}

function scalar(dataType: number, value: unknown): Value | undefined {
  switch (dataType) {
    case 8:
      return isPair(value) ? BigInt.asIntN(64, join(value)) : undefined;
    case 9:
      return isPair(value) ? join(value) : undefined;
    case 10:
      return typeof value === "number" ? shortestDecimal(value, float32) : undefined;
    case 13:
      return value instanceof Date && value.getTime() > firstTime ? value.getTime() : undefined;
    case 19:
    case 20:
      return textOf(value, "name");
    case 21:
      return textOf(value, "text");
    default:
      if (dataType > lastPlain) return undefined;
      return typeof value === "number" || typeof value === "boolean" || typeof value === "string" ? value : undefined;
  }
}

/** Position of an element in row-major order; NaN if it is outside the matrix. */
function place(index: readonly number[], dimensions: readonly number[]): number {
  return index.reduce((at, i, axis) => {
    const length = dimensions[axis];
    if (length === undefined) return index.length === 1 ? i : Number.NaN;
    return i < length ? at * length + i : Number.NaN;
  }, 0);
}

function elementOf(value: unknown, index: number): unknown {
  return Array.isArray(value) || ArrayBuffer.isView(value) ? Reflect.get(value, index) : undefined;
}

export function isVariant(value: unknown): value is VariantLike {
  return typeof value === "object" && value !== null && "dataType" in value && "arrayType" in value;
}

/** The stack represents 64-bit integers as high and low words. */
function isPair(value: unknown): value is readonly [number, number] {
  return Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "number";
}

function join([high, low]: readonly [number, number]): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

function textOf(value: unknown, name: string): string | undefined {
  const text = member(value, name);
  return typeof text === "string" ? text : undefined;
}

export function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
