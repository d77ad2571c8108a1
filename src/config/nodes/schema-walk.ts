// Queries zod schemas: description, keys, bounds and secrecy of a place. Also words zod's issues for configurations.
import { z } from "zod";
import { unreachable } from "../../core/errors.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { joinNames } from "./suggest.ts";

type Schema = z.core.$ZodType;
/** The parts of a zod definition that are used. */
interface Definition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly out?: Schema;
  readonly shape?: Readonly<Record<PropertyKey, Schema>>;
  readonly valueType?: Schema;
  readonly element?: Schema;
  readonly options?: readonly Schema[];
  readonly defaultValue?: unknown;
}

function definition(schema: Schema): Definition {
  return schema._zod.def;
}

/** The schema and the schemas it wraps (optional, default, transform), outermost first. */
export function layers(schema: Schema): readonly Schema[] {
  const { innerType, in: input, out } = definition(schema);
  // A preprocess step has a transform on its input side, so its output side describes the input.
  const inner = innerType ?? (input && definition(input).type === "transform" ? out : input);
  return inner ? [schema, ...layers(inner)] : [schema];
}

/** The innermost layer: an object, a union, a string ... */
export function core(schema: Schema): Schema {
  return layers(schema).at(-1) ?? schema;
}

/** The possible schemas at `key`; several for a union. */
function inside(schema: Schema, key: PropertyKey): readonly Schema[] {
  return branches(schema).flatMap((branch) => {
    const { shape, valueType, element } = definition(branch);
    const field = shape && Object.hasOwn(shape, key) ? shape[key] : (valueType ?? element);
    return field ?? [];
  });
}

/** All alternatives of a union, nested ones included. Any other schema is its only branch. */
function branches(schema: Schema): readonly Schema[] {
  const inner = core(schema);
  return definition(inner).options?.flatMap(branches) ?? [inner];
}

/** The schemas at `path`. Empty: no such place. */
export function schemasAt(schema: Schema, path: readonly PropertyKey[]): readonly Schema[] {
  let found: readonly Schema[] = [schema];
  for (const key of path) found = found.flatMap((candidate) => inside(candidate, key));
  return found;
}

export function keysOf(schema: Schema): readonly string[] {
  return branches(schema).flatMap((branch) => Object.keys(definition(branch).shape ?? {}));
}

/** The text of `.describe()` on any layer. */
export function descriptionOf(schema: Schema): string | undefined {
  const descriptions = layers(schema).map((layer) => z.globalRegistry.get(layer)?.description);
  return descriptions.find((description) => description !== undefined);
}

/** The default as it would be written. Undefined: the field has none. */
export function defaultOf(schema: Schema): unknown {
  const initial = layers(schema).map((layer) => definition(layer).defaultValue);
  return asWritten(
    schema,
    initial.find((value) => value !== undefined),
  );
}

/** A value of the parsed configuration as it would be written: `1s` where the schema has 1000. */
export function asWritten(schema: Schema, value: unknown): unknown {
  const metas = layers(schema).map((layer) => z.globalRegistry.get(layer)?.measure);
  const measure = metas.find((each) => each !== undefined);
  if (typeof value !== "number" || measure === undefined) return value;
  // `9 MiB` is written as `9MiB`.
  return (measure === "duration" ? formatDuration : formatByteSize)(value).replace(" ", "");
}

export function isSecret(schema: Schema): boolean {
  return layers(schema).some((layer) => z.globalRegistry.get(layer)?.secret === true);
}

function boundsOf(schema: Schema): { readonly min?: number; readonly max?: number } {
  const inner = core(schema);
  if (!(inner instanceof z.ZodNumber)) return {};
  // Bounds of the number type itself do not count.
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

/** `must be ...`, without the found value. */
export function messageFor(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
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

/** All accepted kinds, if no branch accepts the kind of the value. */
function unionMessage(errors: readonly (readonly z.core.$ZodIssue[])[]): string {
  const wanted = errors
    .flat()
    .filter(({ path }) => path.length === 0)
    .map(({ message }) => /^must be (.*)$/.exec(message)?.[1])
    .filter((text) => text !== undefined);
  return wanted.length === 0 ? "is not what may stand here" : `must be ${joinNames([...new Set(wanted)], "or")}`;
}
