// Paths that find several values: `$.list[*].v`, `$.**`. Pure.
import { child, innerDocument, type JsonPath, lookUp, type PathStep } from "./json-path.ts";
import { PayloadError } from "./payload-error.ts";

/** What `[*]` and `.**` may find in one message. More is refused: it would be a delivery that never ends. */
export const maxElements = 10_000;
/** Levels that `.**` goes down. */
const maxDepth = 32;

/** One value that a path found. */
export interface Found {
  readonly value: unknown;
  /** What stood for `[*]` and `.**` on the way: an index, the name of a member, or names joined by `/`. */
  readonly keys: readonly string[];
}

/** Values at `path`; members named in `exclude` are passed over. Throws `PayloadError` when they are too many. */
export function expand(document: unknown, path: JsonPath, exclude: readonly string[]): readonly Found[] {
  let places: Found[] = [{ value: document, keys: [] }];
  for (const step of path.steps) {
    const next: Found[] = [];
    for (const { value, keys } of places) {
      if (typeof step === "object" && step.kind === "every")
        for (const [key, element] of entries(value).filter(([name]) => !exclude.includes(name)))
          next.push({ value: element, keys: [...keys, key] });
      else if (typeof step === "object" && step.kind === "leaves") collectLeaves(value, keys, [], exclude, next);
      else next.push({ value: child(value, step), keys });
    }
    if (next.length > maxElements) throw new PayloadError(`has more than ${maxElements} values at ${path.text}`);
    places = next;
  }
  return places;
}

/**
 * `document` with the texts of JSON that `path` leads through, up to its first `[*]`, in the place of their text: so that
 * they are parsed once and not for each element. `document` itself stays as it is.
 */
export function opened(document: unknown, { steps }: Pick<JsonPath, "steps">, depth = 0): unknown {
  const parent = typeof document === "string" ? (innerDocument(document) ?? document) : document;
  const name = steps[depth];
  if (typeof name !== "string" || typeof parent !== "object" || parent === null) return parent;
  if (Array.isArray(parent) || !Object.hasOwn(parent, name)) return parent;
  const before: unknown = Object.getOwnPropertyDescriptor(parent, name)?.value;
  const after = opened(before, { steps }, depth + 1);
  return after === before ? parent : { ...parent, [name]: after };
}

/** What stands at a path whose `[*]` stand for `keys`, one after the other. */
export function follow(document: unknown, path: JsonPath, keys: readonly string[]): unknown {
  if (!path.many) return lookUp(document, path);
  let at = document;
  let depth = 0;
  for (const step of path.steps) at = isEvery(step) ? elementAt(at, keys[depth++]) : child(at, step);
  return at;
}

function isEvery(step: PathStep): boolean {
  return typeof step === "object" && step.kind === "every";
}

function elementAt(outer: unknown, key: string | undefined): unknown {
  if (key === undefined) return undefined;
  const parent = typeof outer === "string" ? innerDocument(outer) : outer;
  return Array.isArray(parent) ? child(parent, Number(key)) : child(parent, key);
}

function entries(outer: unknown): readonly (readonly [string, unknown])[] {
  const parent = typeof outer === "string" ? innerDocument(outer) : outer;
  if (typeof parent !== "object" || parent === null || parent instanceof Uint8Array) return [];
  return Object.entries(parent);
}

function collectLeaves(
  parent: unknown,
  keys: readonly string[],
  names: readonly string[],
  exclude: readonly string[],
  found: Found[],
): void {
  if (names.length > maxDepth) throw new PayloadError(`is nested deeper than ${maxDepth} levels`);
  for (const [name, value] of entries(parent)) {
    if (exclude.includes(name)) continue;
    if (typeof value === "object") collectLeaves(value, keys, [...names, name], exclude, found);
    else if (typeof value !== "string") found.push({ value, keys: [...keys, [...names, name].join("/")] });
  }
}
