// What a zod schema says about a place inside it: description, keys, bounds, whether it is a secret; and what it found wrong,
// in the words of a configuration.
import { z } from "zod";
import { unreachable } from "../core/unreachable.ts";
import { joinNames } from "./suggest.ts";

type Schema = z.core.$ZodType;
/** What is looked at of a schema: what it wraps, and what stands inside of it. */
interface Definition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly out?: Schema;
  readonly shape?: Readonly<Record<PropertyKey, Schema>>;
  readonly valueType?: Schema;
  readonly element?: Schema;
  readonly options?: readonly Schema[];
}

function definition(schema: Schema): Definition {
  return schema._zod.def;
}

/** What is written, without the wrappers that make it optional, give it a default or transform it; outermost first. */
export function layers(schema: Schema): readonly Schema[] {
  const { innerType, in: input, out } = definition(schema);
  // A preprocess step has a transform on its input side; what is written is then described by its output side.
  const inner = innerType ?? (input && definition(input).type === "transform" ? out : input);
  return inner ? [schema, ...layers(inner)] : [schema];
}

/** The innermost layer: an object, a union, a string ... */
export function core(schema: Schema): Schema {
  return layers(schema).at(-1) ?? schema;
}

/** The schemas that may stand at `key` of what `schema` describes: several where it is a union. */
function inside(schema: Schema, key: PropertyKey): readonly Schema[] {
  return branches(schema).flatMap((branch) => {
    const { shape, valueType, element } = definition(branch);
    const field = shape && Object.hasOwn(shape, key) ? shape[key] : (valueType ?? element);
    return field ?? [];
  });
}

/** The alternatives of a union, and of the unions in it; any other schema is its own only one. */
function branches(schema: Schema): readonly Schema[] {
  const inner = core(schema);
  return definition(inner).options?.flatMap(branches) ?? [inner];
}

/** The schemas of the place at `path`. Empty: `schema` knows no such place. */
export function schemasAt(schema: Schema, path: readonly PropertyKey[]): readonly Schema[] {
  let found: readonly Schema[] = [schema];
  for (const key of path) found = found.flatMap((candidate) => inside(candidate, key));
  return found;
}

/** Keys that may stand in the objects `schema` describes. */
export function keysOf(schema: Schema): readonly string[] {
  return branches(schema).flatMap((branch) => Object.keys(definition(branch).shape ?? {}));
}

/** The text of `.describe()`, wherever among the wrappers it was put. */
export function descriptionOf(schema: Schema): string | undefined {
  const descriptions = layers(schema).map((layer) => z.globalRegistry.get(layer)?.description);
  return descriptions.find((description) => description !== undefined);
}

/** Whether what stands there must not be shown. */
export function isSecret(schema: Schema): boolean {
  return layers(schema).some((layer) => z.globalRegistry.get(layer)?.secret === true);
}

export function boundsOf(schema: Schema): { readonly min?: number; readonly max?: number } {
  const inner = core(schema);
  if (!(inner instanceof z.ZodNumber)) return {};
  // Bounds that only say "a number" are none.
  const bounds = Object.entries({ min: inner.minValue, max: inner.maxValue });
  return Object.fromEntries(bounds.filter(([, value]) => Math.abs(value ?? Infinity) < Number.MAX_SAFE_INTEGER));
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
