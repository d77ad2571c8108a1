// The values of a configuration as a person wrote them, each with its place, and the defaults of what is not written.
// Without secrets. Tags are left out, since a source may have 100,000.
import { shownValue } from "../../lib/text/without-secrets.ts";
import { isHidden } from "./excerpt.ts";
import { type ConfigNode, childNode, childPath, type Position, type ScalarNode } from "./node.ts";
import { asWritten, defaultOf, keysOf, schemasAt } from "./schema-walk.ts";

type Schema = Parameters<typeof keysOf>[0];

export interface ShownValue {
  /** `service.limits.requestsPerSecond` */
  readonly path: string;
  /** As written, such as `1s`; a reference stays a reference. */
  readonly value: string;
  /** Where it is written. Undefined: it is the default. */
  readonly at?: Position;
}

const hidden = "***";
/** The default of a reference may be a secret. */
const fallback = /:-[^}]*\}/g;

/** `schemas`: the possible ones of this place; none: it has no schema, and the names in its path tell what is secret. */
export function shownValues(
  schemas: readonly Schema[],
  node: ConfigNode | undefined,
  path: string,
  initial?: unknown,
): readonly ShownValue[] {
  if (node?.kind === "scalar") return [{ path, value: shownScalar(node, schemas), at: node.at }];
  if (node?.kind === "list")
    return node.items.flatMap((item, index) =>
      shownValues(
        schemas.flatMap((schema) => schemasAt(schema, [index])),
        item,
        childPath(path, index),
      ),
    );
  const [schema] = schemas;
  const fromAbove = schema ? asWritten(schema, initial) : initial;
  const given = fromAbove ?? (node ? {} : schemas.map(defaultOf).find((value) => value !== undefined));
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return given === undefined || (Array.isArray(given) && given.length === 0)
      ? []
      : [{ path, value: typeof given === "string" ? given : JSON.stringify(given) }];
  const below = new Map(Object.entries(given));
  const written = node ? [...node.entries.keys()] : [];
  const keys = new Set([...schemas.flatMap(keysOf), ...below.keys(), ...written]);
  return [...keys].flatMap((key) =>
    shownValues(
      schemas.flatMap((schema) => schemasAt(schema, [key])),
      childNode(node, key),
      childPath(path, key),
      below.get(key),
    ),
  );
}

function shownScalar({ path, text, reference }: ScalarNode, schemas: readonly Schema[]): string {
  const isSecret = isHidden(path, schemas);
  if (reference !== undefined) return isSecret ? shownReference(reference) : shownValue(reference);
  return isSecret ? hidden : shownValue(text);
}

/** A text that is more than one reference may hold a part of the secret. */
function shownReference(reference: string): string {
  return /^\$\{[^}]*\}$/.test(reference) ? reference.replace(fallback, `:-${hidden}}`) : hidden;
}
