// Paths that find several values: `$.list[*].v`, `$.**`. Pure.
import { child, innerDocument, type JsonPath, lookUp, type PathStep } from "./json-path.ts";
import { PayloadError } from "./payload-error.ts";

/** What `[*]` and `.**` may find in one message. More is refused: it would be a delivery that never ends. */
const maxElements = 10_000;
/** Levels that `.**` goes down. */
const maxDepth = 32;

/** One value that a path found. */
export interface Found {
  readonly value: unknown;
  /** What stood for `[*]` and `.**` on the way: an index, the name of a member, or names joined by `/`. */
  readonly keys: readonly string[];
  /**
   * Bit k: the key at index k is a position in a list, or, of `.**`, contains the position of a record in a list. A position
   * may be that of another element next time.
   */
  readonly positions: number;
}

/**
 * Values at `path`; members named in `exclude` are passed over. `skipped` is called for each text under `.**` that is no
 * number. Throws `PayloadError` when they are too many.
 */
export function expand(
  document: unknown,
  path: JsonPath,
  exclude: readonly string[],
  skipped: () => void = () => {},
): readonly Found[] {
  let places: Found[] = [{ value: document, keys: [], positions: 0 }];
  for (const step of path.steps) {
    const next: Found[] = [];
    for (const { value, keys, positions } of places) {
      if (typeof step === "object" && step.kind === "every") {
        const { list, members } = entries(value);
        for (const [key, element] of members)
          if (!exclude.includes(key))
            next.push({
              value: element,
              keys: [...keys, key],
              positions: list ? positions | (1 << keys.length) : positions,
            });
      } else if (typeof step === "object" && step.kind === "leaves")
        collectLeaves(value, { keys, positions, exclude, found: next, skipped }, [], false);
      else next.push({ value: child(value, step), keys, positions });
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

function entries(outer: unknown): {
  readonly list: boolean;
  readonly members: readonly (readonly [string, unknown])[];
} {
  const parent = typeof outer === "string" ? innerDocument(outer) : outer;
  if (typeof parent !== "object" || parent === null || parent instanceof Uint8Array)
    return { list: false, members: [] };
  return { list: Array.isArray(parent), members: Object.entries(parent) };
}

interface Leaves {
  /** What led to where `.**` begins. */
  readonly keys: readonly string[];
  readonly positions: number;
  readonly exclude: readonly string[];
  readonly found: Found[];
  readonly skipped: () => void;
}

/** A text that is a number; not a name such as `0042` or `24e124`, the beginning of a device address. */
const numberInText = /^-?(?:(?:0|[1-9]\d*)(?:\.\d+)?|\d(?:\.\d+)?[eE][-+]?\d{1,3})$/;

/** `inRecord`: a record in a list stands above `parent`. */
function collectLeaves(parent: unknown, leaves: Leaves, names: readonly string[], inRecord: boolean): void {
  if (names.length > maxDepth) throw new PayloadError(`is nested deeper than ${maxDepth} levels`);
  const { list, members } = entries(parent);
  for (const [name, value] of members) {
    if (leaves.exclude.includes(name)) continue;
    const path = [...names, name];
    if (typeof value === "object") collectLeaves(value, leaves, path, inRecord || (list && !Array.isArray(value)));
    else if (typeof value !== "string" || numberInText.test(value)) {
      const { keys, positions } = leaves;
      leaves.found.push({
        value,
        keys: [...keys, path.join("/")],
        positions: inRecord ? positions | (1 << keys.length) : positions,
      });
    } else leaves.skipped();
  }
}
