// What a zod schema says about a place inside it: description, keys, bounds, whether it is a secret; and what it found wrong,
// in the words of a configuration.
import { z } from "zod";
import { unreachable } from "../core/unreachable.ts";
import { joinNames } from "./suggest.ts";

/** The slice of a schema that is looked at. What each kind has beside `type` differs; unknown kinds have nothing inside. */
type Definition = Readonly<Record<string, unknown>> & { readonly type: string };

function definition(schema: z.core.$ZodType): Definition {
  // Every definition is an object of named parts; each part is checked where it is read.
  return schema._zod.def as unknown as Definition;
}

function isSchema(value: unknown): value is z.core.$ZodType {
  return typeof value === "object" && value !== null && "_zod" in value;
}

/** What is written, without the wrappers that make it optional, give it a default or transform it; outermost first. */
export function layers(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const found = [schema];
  for (;;) {
    const def = definition(found.at(-1) ?? schema);
    const inner = def.type === "pipe" ? writtenSide(def) : def.innerType;
    if (!isSchema(inner)) return found;
    found.push(inner);
  }
}

/** A preprocess step has a transform on its input side; what is written is then described by its output side. */
function writtenSide({ in: input, out: output }: Definition): unknown {
  return isSchema(input) && definition(input).type === "transform" ? output : input;
}

/** The innermost layer: an object, a union, a string ... */
export function core(schema: z.core.$ZodType): z.core.$ZodType {
  return layers(schema).at(-1) ?? schema;
}

/** The schemas that may stand at `key` of what `schema` describes: several where it is a union. */
function inside(schema: z.core.$ZodType, key: PropertyKey): readonly z.core.$ZodType[] {
  const inner = core(schema);
  const def = definition(inner);
  switch (def.type) {
    case "object": {
      const shape: unknown = def.shape;
      const field: unknown =
        typeof shape === "object" && shape !== null && Object.hasOwn(shape, key) ? Reflect.get(shape, key) : undefined;
      return isSchema(field) ? [field] : [];
    }
    case "record":
      return isSchema(def.valueType) ? [def.valueType] : [];
    case "array":
      return isSchema(def.element) ? [def.element] : [];
    case "union":
      return branches(inner).flatMap((branch) => inside(branch, key));
    default:
      return [];
  }
}

/** The alternatives of a union; any other schema is its own only one. */
function branches(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const inner = core(schema);
  const { type, options } = definition(inner);
  return type === "union" && Array.isArray(options) ? options.filter(isSchema) : [inner];
}

/** The schemas of the place at `path`. Empty: `schema` knows no such place. */
export function schemasAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly z.core.$ZodType[] {
  let found: readonly z.core.$ZodType[] = [schema];
  for (const key of path) found = found.flatMap((candidate) => inside(candidate, key));
  return found;
}

/** Keys that may stand in the objects `schema` describes. */
export function keysOf(schema: z.core.$ZodType): readonly string[] {
  return branches(schema).flatMap((branch) => {
    const { type, shape } = definition(core(branch));
    return type === "object" && typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
  });
}

/** The text of `.describe()`, wherever among the wrappers it was put. */
export function descriptionOf(schema: z.core.$ZodType): string | undefined {
  for (const layer of layers(schema)) {
    const description = z.globalRegistry.get(layer)?.description;
    if (description !== undefined) return description;
  }
  return undefined;
}

/** Whether what stands there must not be shown. */
export function isSecret(schema: z.core.$ZodType): boolean {
  return layers(schema).some((layer) => z.globalRegistry.get(layer)?.secret === true);
}

export function boundsOf(schema: z.core.$ZodType): { readonly min?: number; readonly max?: number } {
  const inner = core(schema);
  if (!(inner instanceof z.ZodNumber)) return {};
  return { ...bound("min", inner.minValue), ...bound("max", inner.maxValue) };
}

/** Bounds that only say "a number" are none. */
function bound(name: "min" | "max", value: number | null): { min?: number; max?: number } {
  return value === null || !Number.isFinite(value) || Math.abs(value) >= Number.MAX_SAFE_INTEGER
    ? {}
    : { [name]: value };
}

const kinds: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "a map",
  record: "a map",
  array: "a list",
};

/** `must be ...`, without what stands there. */
export function messageFor(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kindOf(issue.expected)}`;
    case "invalid_value":
      return `must be ${joinNames(issue.values.map(String), "or")}`;
    case "too_small":
    case "too_big":
      return sizeMessage(issue);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return issue.format === "url" ? "must be a URL" : `must have the form of ${issue.format}`;
    case "invalid_union":
      return unionMessage(issue.errors);
    case "invalid_key":
    case "invalid_element":
    case "unrecognized_keys":
    case "custom":
      return "is not what may stand here";
    default:
      return unreachable(issue);
  }
}

function kindOf(expected: unknown): string {
  return kinds[String(expected)] ?? String(expected);
}

type Size = z.core.$ZodRawIssue & { readonly code: "too_small" | "too_big" };

function sizeMessage(issue: Size): string {
  const small = issue.code === "too_small";
  const limit = Number(small ? issue.minimum : issue.maximum);
  if (issue.origin === "number" || issue.origin === "int") {
    const { min, max } = issue.schema ? boundsOf(issue.schema) : {};
    if (min !== undefined && max !== undefined && issue.inclusive) return `must be from ${min} to ${max}`;
    if (!issue.inclusive) return `must be ${small ? "greater" : "less"} than ${limit}`;
    return `must be at ${small ? "least" : "most"} ${limit}`;
  }
  const unit = issue.origin === "string" ? "character" : "entry";
  if (small && limit === 1) return issue.origin === "string" ? "must not be empty" : "must have at least one entry";
  const plural = unit === "entry" ? "entries" : "characters";
  return `must have at ${small ? "least" : "most"} ${limit} ${plural}`;
}

/** What all branches want, where none got further than the kind of value. */
function unionMessage(errors: readonly (readonly z.core.$ZodIssue[])[]): string {
  const wanted = errors
    .flat()
    .filter(({ path }) => path.length === 0)
    .map(({ message }) => /^must be (.*)$/.exec(message)?.[1])
    .filter((text) => text !== undefined);
  return wanted.length === 0 ? "is not what may stand here" : `must be ${joinNames([...new Set(wanted)], "or")}`;
}
