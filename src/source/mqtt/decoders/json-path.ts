// The subset of JSONPath for payloads: `$.a.b[0]['x y'][*]`, `$.**`. Parsed once, applied per message.
import { attempt } from "../../../lib/flow/attempt.ts";
import { parsedText } from "../../../lib/values/fields.ts";
import { atIndex, isScalar, PayloadError, parseJson } from "./payload.ts";

/** One step of a path. Text: member by name. Number: element by index, from the end if negative. */
export type PathStep =
  | string
  | number
  /** `[*]`: every element of an array or member of an object. */
  | { readonly kind: "every" }
  /** `.**`: every number and boolean below, at any depth. */
  | { readonly kind: "leaves" }
  /** `[?@.id=='101']`: the first element whose member `name` has this value. */
  | { readonly kind: "where"; readonly name: string; readonly equals: string };

export interface JsonPath {
  /** The configured text. */
  readonly text: string;
  readonly steps: readonly PathStep[];
  /** Whether the path contains `[*]` or `.**` and may match several values. */
  readonly many: boolean;
}

const quotedText = `'(?:[^'\\\\]|\\\\.)*'|"(?:[^"\\\\]|\\\\.)*"`;
const memberName = "[A-Za-z_\\u0080-\\uffff][\\w\\-\\u0080-\\uffff]*";
const step = new RegExp(
  [
    `\\.(?<name>${memberName})`,
    "(?<leaves>\\.\\*\\*|\\[\\*\\*\\])",
    "(?<every>\\.\\*|\\[\\*\\])",
    "\\[(?<index>-?\\d{1,9})\\]",
    `\\[(?<quoted>${quotedText})\\]`,
    `\\[\\?\\(?@\\.(?<key>${memberName})\\s*==\\s*(?<equals>${quotedText}|-?[\\w.]+)\\)?\\]`,
  ].join("|"),
  "y",
);

export function parseJsonPath(text: string): JsonPath | undefined {
  if (!text.startsWith("$")) return undefined;
  const steps: PathStep[] = [];
  step.lastIndex = 1;
  while (step.lastIndex < text.length) {
    const groups = step.exec(text)?.groups;
    if (!groups) return undefined;
    steps.push(toStep(groups));
  }
  if (steps.slice(0, -1).some((each) => isKind(each, "leaves"))) return undefined;
  return { text, steps, many: steps.some(isWild) };
}

/** Number of `[*]` and `.**` in the path. */
export function levelsOf({ steps }: JsonPath): number {
  return steps.filter(isWild).length;
}

export function isKind(step: PathStep | undefined, kind: "every" | "leaves"): boolean {
  return typeof step === "object" && step.kind === kind;
}

/** Whether the step may match several places. */
export function isWild(step: PathStep): boolean {
  return typeof step === "object" && step.kind !== "where";
}

function toStep(groups: Readonly<Record<string, string | undefined>>): PathStep {
  const { name, leaves, every, index, quoted, key, equals } = groups;
  if (name !== undefined) return name;
  if (every !== undefined) return { kind: "every" };
  if (leaves !== undefined) return { kind: "leaves" };
  if (index !== undefined) return Number(index);
  if (key !== undefined && equals !== undefined) return { kind: "where", name: key, equals: unquoted(equals) };
  return unquoted(quoted ?? "");
}

function unquoted(text: string): string {
  return /^['"]/.test(text) ? text.slice(1, -1).replaceAll(/\\(.)/g, "$1") : text;
}

export const noKeys: readonly string[] = [];

/**
 * The value at `path` in `document`, or undefined. `keys`: in place of its `[*]`, in order. The `PayloadError` of a
 * malformed element is also the value of all paths below it.
 */
export function follow(document: unknown, path: JsonPath, keys = noKeys): unknown {
  let at = document;
  let depth = 0;
  for (const step of path.steps) {
    at = path.many && isKind(step, "every") ? elementAt(at, keys[depth++]) : child(at, step);
    if (at === undefined) return undefined;
  }
  return at;
}

/** Result of a step with a single match. Ignores inherited members such as `constructor`. */
function child(outer: unknown, next: PathStep): unknown {
  const parent = inside(outer);
  if (typeof parent !== "object" || parent === null) return undefined;
  if (parent instanceof PayloadError) return parent;
  if (typeof next === "string") return Array.isArray(parent) ? undefined : member(parent, next);
  if (typeof next === "number") return Array.isArray(parent) ? atIndex(parent, next) : undefined;
  if (next.kind !== "where") return undefined;
  const elements: readonly unknown[] = Array.isArray(parent) ? parent : Object.values(parent);
  const found = elements.find((element) => {
    const value = typeof element === "object" && element !== null ? member(element, next.name) : undefined;
    return scalarText(value) === next.equals;
  });
  // A malformed element may be the one that is sought.
  return found === undefined ? elements.find((element) => element instanceof PayloadError) : found;
}

/** `outer`, or the parsed JSON if it is a text, since some gateways embed JSON in texts. Undefined: other text. */
function inside(outer: unknown): unknown {
  if (typeof outer !== "string") return outer;
  if (!/^\s*[[{]/.test(outer)) return undefined;
  return attempt(() => parseJson(outer));
}

/** A text, number or boolean as text; undefined for other values. */
export function scalarText(value: unknown): string | undefined {
  return isScalar(value) ? String(value) : undefined;
}

function member(parent: object, name: string): unknown {
  return Object.hasOwn(parent, name) ? (parent as Readonly<Record<string, unknown>>)[name] : undefined; // an own member
}

export function payloadPath() {
  const form = "be a path into the payload, as in $.t, $.a.b[0], $['x y'], $.list[*].v or $.list[?@.id=='7'].v";
  return parsedText((text) => parseJsonPath(text) ?? form);
}

/** Most matches of `[*]` and `.**` in one message. Further ones would delay a delivery too long. */
const maxElements = 10_000;
/** Depth limit of `.**`. */
const maxDepth = 32;

export interface PathMatch {
  readonly value: unknown;
  /** What `[*]` and `.**` matched: an index, a member name, or names joined by `/`. */
  readonly keys: readonly string[];
  /** Bit k: key k is, or contains, the list position of an element. Another element may have it next time. */
  readonly positions: number;
  /** Why its positions are not known. */
  readonly displaced?: PayloadError | undefined;
}

/** Matches of `path`. `skipped`: called for each text under `.**`. Throws `PayloadError` if there are too many. */
export function expand(
  document: unknown,
  path: JsonPath,
  exclude: readonly string[],
  skipped: () => void = () => {},
): readonly PathMatch[] {
  let places: PathMatch[] = [{ value: document, keys: [], positions: 0 }];
  for (const step of path.steps) {
    const next: PathMatch[] = [];
    for (const place of places) {
      const { value, keys, positions } = place;
      let { displaced } = place;
      const add = (found: unknown, key: string, isPlace: boolean) => {
        next.push({
          value: found,
          keys: [...keys, key],
          positions: isPlace ? positions | (1 << keys.length) : positions,
          displaced,
        });
        if (found instanceof PayloadError && found.displaces) displaced ??= found;
      };
      if (value instanceof PayloadError) next.push(place);
      else if (isKind(step, "every")) {
        const { list, members } = entries(value);
        for (const [key, element] of members) if (!exclude.includes(key)) add(element, key, list);
      } else if (isKind(step, "leaves")) collectLeaves(value, { exclude, add, skipped }, [], false);
      else next.push({ ...place, value: child(value, step) });
    }
    if (next.length > maxElements) throw new PayloadError(`has more than ${maxElements} values at ${path.text}`);
    places = next;
  }
  return places;
}

/** Copies `document` with JSON texts along `path` parsed, up to its first `[*]`, so that each is parsed once. */
export function opened(document: unknown, { steps }: Pick<JsonPath, "steps">, depth = 0): unknown {
  const parent = inside(document) ?? document;
  const name = steps[depth];
  if (typeof name !== "string" || typeof parent !== "object" || parent === null) return parent;
  if (Array.isArray(parent) || !Object.hasOwn(parent, name)) return parent;
  const before = member(parent, name);
  const after = opened(before, { steps }, depth + 1);
  return after === before ? parent : { ...parent, [name]: after };
}

function elementAt(outer: unknown, key: string | undefined): unknown {
  if (key === undefined) return undefined;
  const parent = inside(outer);
  return Array.isArray(parent) ? parent.at(Number(key)) : child(parent, key);
}

function entries(outer: unknown): { readonly list: boolean; readonly members: readonly [string, unknown][] } {
  const parent = inside(outer);
  const empty = typeof parent !== "object" || parent === null || parent instanceof Uint8Array;
  return { list: Array.isArray(parent), members: empty ? [] : Object.entries(parent) };
}

interface Leaves {
  readonly exclude: readonly string[];
  readonly add: (value: unknown, key: string, isPlace: boolean) => void;
  readonly skipped: () => void;
}

/** A numeric text. Excludes names such as `0042` or `24e124`, the prefix of a device address. */
const numberInText = /^-?(?:(?:0|[1-9]\d*)(?:\.\d+)?|\d(?:\.\d+)?[eE][-+]?\d{1,3})$/;

/** `inRecord`: an ancestor of `parent` is a record in a list. */
function collectLeaves(parent: unknown, leaves: Leaves, names: readonly string[], inRecord: boolean): void {
  if (names.length > maxDepth) throw new PayloadError(`is nested deeper than ${maxDepth} levels`);
  const { list, members } = entries(parent);
  for (const [name, value] of members) {
    if (leaves.exclude.includes(name)) continue;
    const path = [...names, name];
    if (typeof value === "object" && !(value instanceof PayloadError))
      collectLeaves(value, leaves, path, inRecord || (list && !Array.isArray(value)));
    else if (typeof value !== "string" || numberInText.test(value)) leaves.add(value, path.join("/"), inRecord);
    else leaves.skipped();
  }
}
