// Reads the definition of a structure when its first value arrives (OPC 10000-3, 5.8.3; before 1.04 from a dictionary).
import type { Logger } from "../../../core/runtime.ts";
import { attributes, type NodeId, readValues, type Services } from "../session/services.ts";
import { refusalOf } from "../stack/failure.ts";
import type { NotifiedValue } from "../types/reading.ts";
import {
  convertField,
  type FieldStep,
  type KnownTypes,
  type StructureField,
  type StructureType,
  type Unknown,
} from "../types/structure.ts";
import { builtIn, type Converted, member, type VariantLike } from "../types/value.ts";
import { findStructure } from "./type-dictionary.ts";

export interface FieldOf {
  readonly nodeId: NodeId;
  readonly index?: readonly number[] | undefined;
  readonly field?: readonly FieldStep[] | undefined;
}

const hasEncoding = "i=38";
const hasSubtype = "i=45";
/** Standard data types up to this id are built-in, or abstract and sent as a Variant. */
const lastBuiltIn = 25;
/** BaseDataType, Number, Integer, UInteger. */
const abstract = [24, 26, 27, 28];
const enumeration = 29;
const kinds = { plain: 0, optional: 1, union: 2, plainOfAny: 3, unionOfAny: 4 } as const;
const mostLevels = 64;

/** The known structures of one server; valid for one connection. */
export type StructureTypes = ReturnType<typeof structureTypes>;

export function structureTypes(binary: KnownTypes["binary"], services: Services, log: Logger) {
  /** Encoding → data type. Undefined if the server does not describe it. */
  const typeOfEncoding = new Map<string, string | undefined>();
  const definitions = new Map<string, StructureType>();
  /** Built-in type of each data type that is not a structure. */
  const builtIns = new Map<string, number>();
  /** Conversion results per value, so that each is decoded once. */
  const conversions = new WeakMap<VariantLike, Map<unknown, Converted>>();
  const known: KnownTypes = {
    binary,
    typeOf: (encoding) => typeOfEncoding.get(encoding),
    definition: (type) => definitions.get(type),
  };

  async function convertKnown(
    value: VariantLike,
    item: FieldOf,
    field: readonly FieldStep[],
    signal: AbortSignal,
  ): Promise<Converted> {
    for (;;) {
      const converted = convertField(value, item.index, field, known);
      if (!("unknown" in converted) || typeOfEncoding.has(converted.unknown)) return converted;
      await ask(converted, item, signal).catch((error: unknown) => {
        // If the connection is lost, the value is resent on the next one.
        if (signal.aborted || refusalOf(error) === undefined) throw error;
        // The type stays unknown and must not block others. An example is a dictionary above the message limit.
        typeOfEncoding.set(converted.unknown, undefined);
        log.warn({ err: error, encoding: converted.unknown }, "how a structure is made up cannot be read");
      });
    }
  }

  async function ask({ unknown: encoding }: Unknown, { nodeId }: FieldOf, signal: AbortSignal): Promise<void> {
    const [types = []] = await services.related([encoding], "Inverse", hasEncoding, signal);
    // Some servers have no reference from an encoding to its type. Assume the variable's own type.
    const [own] = types[0] ? [] : await readValues(services, [nodeId], signal, attributes.dataType);
    const type = types[0] ?? (isNodeId(own?.value?.value) ? own.value.value : undefined);
    if (type) await define(type, signal);
    let key = type?.toString();
    if (key === undefined || !definitions.has(key)) {
      const described = await findStructure(services, encoding, signal);
      for (const [each, definition] of described?.types ?? []) definitions.set(each, definition);
      key = described?.key;
    }
    if (key !== undefined && definitions.has(key)) typeOfEncoding.set(encoding, key);
    else {
      typeOfEncoding.set(encoding, undefined);
      const fields = { encoding, type: type?.toString() ?? "unknown" };
      log.warn(fields, "the server does not tell how a structure is made up");
    }
  }

  /** Reads a data type and the types of its fields, level by level. */
  async function define(type: NodeId, signal: AbortSignal): Promise<void> {
    /** Received definitions; the types of their fields are not resolved yet. */
    const raw = new Map<string, unknown>();
    const parents = new Map<string, string>();
    let level = new Map([[type.toString(), type]]);
    for (let depth = 0; level.size > 0 && depth < mostLevels; depth++) {
      const nodes = [...level.values()];
      const answers = await readValues(services, nodes, signal, attributes.dataTypeDefinition);
      const structures = nodes.filter((node, i) => {
        const definition = answers[i]?.value?.value;
        if (!Array.isArray(member(definition, "fields")) || member(definition, "structureType") === undefined)
          return false;
        raw.set(node.toString(), definition);
        return true;
      });
      const others = nodes.filter((node) => !structures.includes(node));
      const above = await services.related(others, "Inverse", hasSubtype, signal);
      const next: NodeId[] = structures.flatMap((node) => fieldTypes(raw.get(node.toString())));
      for (const [i, node] of others.entries()) {
        const parent = above[i]?.[0];
        if (!parent) continue;
        parents.set(node.toString(), parent.toString());
        next.push(parent);
      }
      const seen = (key: string) => raw.has(key) || parents.has(key) || definitions.has(key) || builtIns.has(key);
      level = new Map(
        next
          .map((node) => [node.toString(), node] as const)
          .filter(([key]) => standardType(key) === undefined && !seen(key)),
      );
    }
    const simple = (key: string) => standardType(key) ?? builtIns.get(key);
    for (const key of parents.keys()) {
      let at: string | undefined = key;
      for (let steps = 0; at !== undefined && simple(at) === undefined && steps < mostLevels; steps++)
        at = parents.get(at);
      const number = at === undefined ? undefined : simple(at);
      if (number !== undefined) builtIns.set(key, number);
    }
    const typeOf = (key: string) => simple(key) ?? (raw.has(key) || definitions.has(key) ? key : undefined);
    for (const [key, definition] of raw) {
      const made = structureType(definition, typeOf);
      if (made) definitions.set(key, made);
    }
  }

  return {
    ...known,
    /** The field of a value that `learn` has processed. */
    convert(variant: VariantLike | null, { index, field = [] }: FieldOf): Converted {
      const done = variant ? conversions.get(variant)?.get(field) : undefined;
      return done ?? convertField(variant, index, field, known);
    },
    /** Clears the cache; call it when the server has changed a type. */
    forget(): void {
      typeOfEncoding.clear();
      definitions.clear();
      builtIns.clear();
    },
    /** Reads the definitions of these values. Rejects with `SOURCE_*` if the connection fails, not on a refusal. */
    async learn(values: Iterable<readonly [FieldOf, NotifiedValue, ...unknown[]]>, signal: AbortSignal): Promise<void> {
      for (const [item, { value }] of values) {
        if (!item.field || !value) continue;
        const converted = await convertKnown(value, item, item.field, signal);
        const all = conversions.get(value) ?? new Map<unknown, Converted>();
        conversions.set(value, all.set(item.field, converted));
      }
    },
  };
}

/** The built-in type that encodes a standard data type. Undefined if its id does not determine it. */
function standardType(key: string): number | undefined {
  const number = Number(/^ns=0;i=(\d+)$/.exec(key)?.[1] ?? Number.NaN);
  if (abstract.includes(number)) return builtIn.variant;
  if (number === enumeration) return builtIn.int32;
  return number >= 1 && number <= lastBuiltIn ? number : undefined;
}

function fieldTypes(definition: unknown): NodeId[] {
  const fields: unknown = member(definition, "fields");
  return Array.isArray(fields) ? fields.map((field) => member(field, "dataType")).filter(isNodeId) : [];
}

export function isNodeId(value: unknown): value is NodeId {
  return typeof member(value, "namespace") === "number" && member(value, "identifierType") !== undefined;
}

/** Undefined if a field has an unknown type, since later fields could not be located. */
function structureType(
  definition: unknown,
  typeOf: (dataType: string) => number | string | undefined,
): StructureType | undefined {
  const form = member(definition, "structureType");
  const given: unknown = member(definition, "fields");
  const fields: StructureField[] = [];
  const ofAny = form === kinds.plainOfAny || form === kinds.unionOfAny;
  for (const field of Array.isArray(given) ? given : []) {
    const marked = member(field, "isOptional") === true;
    const declared = typeOf(String(member(field, "dataType")));
    if (declared === undefined) return undefined;
    // Where subtypes are allowed, each value carries its own type.
    const own = typeof declared === "string" ? builtIn.structure : builtIn.variant;
    fields.push({
      name: String(member(field, "name")),
      type: ofAny && marked ? own : declared,
      dimensions: Math.max(0, Number(member(field, "valueRank"))),
      optional: !ofAny && marked,
    });
  }
  const kind =
    form === kinds.optional ? "optional" : form === kinds.union || form === kinds.unionOfAny ? "union" : "plain";
  return { kind, fields };
}
