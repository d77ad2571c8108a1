// Decodes structures by their definitions (OPC 10000-6, 5.2.6 to 5.2.8), and parses paths to their fields. Pure.
//
// The stack's dynamic extension objects are not used. They request all types first (377 to 810 requests), read no
// dictionaries, and rename fields.
import type { BinaryStream } from "node-opcua-binary-stream";
import type { findBuiltInType } from "node-opcua-factory";
import { reasonOf } from "../../../core/errors.ts";
import {
  builtIn,
  builtInNames,
  builtInTypes,
  type Converted,
  convert,
  element,
  isVariant,
  member,
  type VariantLike,
} from "./value.ts";

/** One step into a value: a field by name, or an element of an array or matrix, from 0. */
export type FieldStep = { readonly name: string } | { readonly index: readonly number[] };

/** The result for a structure whose definition has not been read from the server yet. */
export interface Unknown {
  readonly unknown: string;
  readonly reason: string;
}

/** Parses a path such as `Motor.Axes[2].Position` or `Grid[0,1]`; `&` escapes a special character in a name. */
export function parseField(text: string): FieldStep[] | undefined {
  const steps: FieldStep[] = [];
  if (text.startsWith(".")) return undefined;
  const part = /(?:^|\.)((?:&[\s\S]|[^.[\]&])+)|\[(\d{1,7}(?:,\d{1,7})*)\]/y;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    const [, name, index] = match ?? [];
    if (name !== undefined) steps.push({ name: name.replaceAll(/&([\s\S])/g, "$1") });
    else if (index !== undefined && steps.length > 0) steps.push({ index: index.split(",").map(Number) });
    else return undefined;
  }
  return steps.length > 0 ? steps : undefined;
}

export function fieldText(steps: readonly FieldStep[]): string {
  return steps
    .map((step) => ("name" in step ? `.${step.name}` : `[${step.index.join()}]`))
    .join("")
    .slice(1);
}

/** The value at the end of the path, or why there is none. */
export function convertField(
  variant: VariantLike | null | undefined,
  index: readonly number[] | undefined,
  steps: readonly FieldStep[],
  known: KnownTypes,
): Converted | Unknown {
  let at: VariantLike | { readonly reason: string } = element(variant, index);
  for (const [i, step] of steps.entries()) {
    if ("reason" in at) return at;
    if ("index" in step) {
      at = element(at, step.index);
      continue;
    }
    if (at.arrayType !== 0)
      return { reason: `an array stands before ${step.name}; write its element, as in [0].${step.name}` };
    if (at.dataType !== builtIn.structure)
      return { reason: i === 0 ? "not a structure" : `no structure stands before ${step.name}` };
    const field = fieldOf(at.value, step.name, known);
    if ("unknown" in field || "reason" in field) return field;
    at = field;
  }
  return "reason" in at ? at : convert(at);
}

function fieldOf(value: unknown, name: string, known: KnownTypes): VariantLike | Unknown | { readonly reason: string } {
  let fields = value;
  if (isEncoded(value)) {
    const encoding = String(value.nodeId);
    try {
      fields = decodeStructure(encoding, value.buffer, known);
    } catch (error) {
      const why = reasonOf(error);
      return { reason: `the structure is not what its definition says: ${why}` };
    }
    if (!fields)
      return { unknown: encoding, reason: `the server does not tell how its structure ${encoding} is made up` };
  }
  if (fields instanceof Map) {
    const field: unknown = fields.get(name);
    if (isVariant(field)) return field;
    const names = [...fields.keys()].join(", ");
    return { reason: names === "" ? "the structure is empty" : `the structure has no field ${name}; it has ${names}` };
  }
  return fieldOfStandard(value, name);
}

/** An undecoded structure, with the NodeId of its encoding. */
function isEncoded(value: unknown): value is { readonly nodeId: unknown; readonly buffer: Buffer } {
  return typeof value === "object" && value !== null && "nodeId" in value && Buffer.isBuffer(member(value, "buffer"));
}

/** A field of a standard structure, which the stack has decoded. */
function fieldOfStandard(value: unknown, name: string): VariantLike | { readonly reason: string } {
  const schema = member(value, "schema");
  const fields = member(schema, "fields");
  const all = Array.isArray(fields) ? fields : [];
  const field: unknown = all.find((each) => member(each, "originalName") === name || member(each, "name") === name);
  if (!field) {
    const names = all.map((each) => String(member(each, "originalName"))).join(", ");
    return { reason: `the structure has no field ${name}; it has ${names}` };
  }
  const found = member(value, String(member(field, "name")));
  if (isVariant(found)) return found;
  return { dataType: typeOf(field), arrayType: member(field, "isArray") === true ? 1 : 0, value: found };
}

function typeOf(field: unknown): number {
  const category = member(field, "category");
  if (category === "complex") return builtIn.structure;
  if (category === "enumeration") return builtIn.int32;
  const name = String(member(field, "fieldType"));
  return builtInTypes[name] ?? builtInTypes[String(member(member(field, "schema"), "subType"))] ?? 0;
}

/** A structured data type, from its StructureDefinition (OPC 10000-3, 8.49). */
export interface StructureType {
  /** `optional`: some fields may be missing. `union`: exactly one field is present. */
  readonly kind: "plain" | "optional" | "union";
  readonly fields: readonly StructureField[];
}

export interface StructureField {
  readonly name: string;
  /** Number of a built-in type, or NodeId of a structure. */
  readonly type: number | string;
  /** 0: scalar, 1: array, more: matrix with this many dimensions. */
  readonly dimensions: number;
  readonly optional: boolean;
}

export interface KnownTypes {
  readonly binary: Binary;
  /** NodeId of the data type of an encoding. */
  typeOf(encoding: string): string | undefined;
  definition(type: string): StructureType | undefined;
}

/** The parts of the stack that decode OPC UA Binary (OPC 10000-6, 5.2). */
export interface Binary {
  readonly Stream: typeof BinaryStream;
  readonly typeByName: typeof findBuiltInType;
}

/** Fields by name. Nested structures are `Fields`, too. */
type Fields = ReadonlyMap<string, VariantLike>;

/** Decodes a structure. Undefined if its definition is unknown. Throws if the bytes do not match the definition. */
function decodeStructure(encoding: string, body: Buffer, known: KnownTypes): Fields | undefined {
  const type = known.typeOf(encoding);
  const definition = type === undefined ? undefined : known.definition(type);
  return definition && fieldsOf(definition, new known.binary.Stream(body), known);
}

function fieldsOf({ kind, fields }: StructureType, stream: BinaryStream, known: KnownTypes): Fields {
  const mask = kind === "plain" ? 0 : stream.readUInt32();
  let bit = 0;
  const present = fields.filter(({ optional }, i) => {
    if (kind === "union") return mask === i + 1;
    return kind === "plain" || !optional || ((mask >>> bit++) & 1) === 1;
  });
  return new Map(present.map((field) => [field.name, valueOf(field, stream, known)]));
}

function valueOf({ type, dimensions }: StructureField, stream: BinaryStream, known: KnownTypes): VariantLike {
  const dataType = typeof type === "number" ? type : builtIn.structure;
  if (dimensions === 0) {
    const value = single(type, stream, known);
    // A field of any type holds a Variant, which is the value itself.
    return isVariant(value) ? value : { dataType, arrayType: 0, value };
  }
  const array = (count: number, of: StructureField["type"]) => {
    stream.checkArrayLength(count);
    return Array.from({ length: Math.max(0, count) }, () => single(of, stream, known));
  };
  if (dimensions === 1) return { dataType, arrayType: 1, value: array(stream.readInteger(), type) };
  // The lengths precede all elements, which form one sequence.
  const lengths = array(stream.readInteger(), builtIn.int32).map(Number);
  const count = lengths.reduce((product, length) => product * Math.max(0, length), 1);
  return { dataType, arrayType: 2, value: array(count, type), dimensions: lengths };
}

function single(type: StructureField["type"], stream: BinaryStream, known: KnownTypes): unknown {
  if (typeof type === "number") {
    if (type === builtIn.structure) return encodedIn(stream, known);
    const value: unknown = known.binary.typeByName(builtInNames[type] ?? "").decode?.(stream);
    if (value === undefined) throw new RangeError(`there is no built-in type ${type}`);
    // A DataValue in a structure is reduced to its value; its times and status are ignored.
    return type === builtIn.dataValue ? member(value, "value") : value;
  }
  const definition = known.definition(type);
  // Without the definition, the position of the next field is unknown.
  if (!definition) throw new RangeError(`nothing is known of the structure ${type}`);
  return fieldsOf(definition, stream, known);
}

/**
 * Reads a nested structure without decoding it (OPC 10000-6, 5.2.2.15). The stack's decoder ignores the kind of
 * encoding and fills missing fields of standard structures with zeros. Null if it is absent or in XML.
 */
function encodedIn(stream: BinaryStream, { binary }: KnownTypes): { nodeId: unknown; buffer: Buffer } | null {
  const nodeId: unknown = binary.typeByName("NodeId").decode?.(stream);
  const encoding = stream.readUInt8();
  if (encoding === 0) return null;
  const from = stream.length + 4;
  const to = from + Math.max(0, stream.readInteger());
  if (to > stream.buffer.length) throw new RangeError(`${to - from} bytes in ${stream.buffer.length - from}`);
  stream.length = to;
  return encoding === 1 ? { nodeId, buffer: stream.buffer.subarray(from, to) } : null;
}
