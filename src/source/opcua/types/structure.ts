// Structures taken apart by their definitions (OPC 10000-6, 5.2.6 to 5.2.8): from the bytes of one to its fields. Pure.
import { BinaryReader, builtIn, type EncodedStructure } from "./binary-reader.ts";
import { isVariant, type VariantLike } from "./value.ts";

/** A structure's data type, as its StructureDefinition tells (OPC 10000-3, 8.49). */
export interface StructureType {
  /** `optional`: some fields may be missing; `union`: one of the fields is there. */
  readonly kind: "plain" | "optional" | "union";
  readonly fields: readonly StructureField[];
}

export interface StructureField {
  readonly name: string;
  /** Number of a built-in type, or the NodeId of a structure. */
  readonly type: number | string;
  /** 0: one value, 1: an array, more: a matrix of so many dimensions. */
  readonly dimensions: number;
  /** May be missing in a structure with optional fields. */
  readonly optional: boolean;
}

/** What is known of structures. */
export interface KnownTypes {
  /** NodeId of the data type that is encoded so. */
  typeOf(encoding: string): string | undefined;
  definition(type: string): StructureType | undefined;
}

/** Fields by name; of nested structures the values are fields again. */
type Fields = ReadonlyMap<string, VariantLike>;

/** Takes a structure apart. Undefined: nothing is known of it. Throws `RangeError` where the bytes do not fit the definition. */
export function decodeStructure({ encoding, body }: EncodedStructure, known: KnownTypes): Fields | undefined {
  const type = known.typeOf(encoding);
  const definition = type === undefined ? undefined : known.definition(type);
  return definition && fieldsOf(definition, new BinaryReader(body), known);
}

function fieldsOf({ kind, fields }: StructureType, reader: BinaryReader, known: KnownTypes): Fields {
  const mask = kind === "plain" ? 0 : reader.uint32();
  let bit = 0;
  const present = fields.filter(({ optional }, i) => {
    if (kind === "union") return mask === i + 1;
    return kind === "plain" || !optional || ((mask >>> bit++) & 1) === 1;
  });
  return new Map(present.map((field) => [field.name, valueOf(field, reader, known)]));
}

function valueOf({ type, dimensions }: StructureField, reader: BinaryReader, known: KnownTypes): VariantLike {
  const dataType = typeof type === "number" ? type : builtIn.structure;
  const one = () => single(type, reader, known);
  if (dimensions === 0) {
    const value = one();
    // A field of any type holds a Variant, which is the value itself.
    return isVariant(value) ? value : { dataType, arrayType: 0, value };
  }
  // The lengths first, then all elements in one row.
  const lengths = dimensions > 1 ? reader.array(6).map(Number) : undefined;
  const count = lengths ? lengths.reduce((product, length) => product * Math.max(0, length), 1) : reader.length();
  if (count > reader.left) throw new RangeError(`${count} elements in ${reader.left} bytes`);
  const value = Array.from({ length: count }, one);
  return lengths ? { dataType, arrayType: 2, value, dimensions: lengths } : { dataType, arrayType: 1, value };
}

function single(type: number | string, reader: BinaryReader, known: KnownTypes): unknown {
  if (typeof type === "number") return reader.value(type);
  const definition = known.definition(type);
  // Without it nobody knows where the next field begins.
  if (!definition) throw new RangeError(`nothing is known of the structure ${type}`);
  return fieldsOf(definition, reader, known);
}
