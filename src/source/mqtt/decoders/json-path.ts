// The subset of JSONPath that finds values in payloads: `$.a.b[0]['x y'][*]`. Parsed once, followed per message. Pure.
import { z } from "zod";
import { parseJson } from "./json.ts";

/** One step of a path. Text: a member by name. Number: an element by index, from the end if negative. */
export type PathStep =
  | string
  | number
  /** `[*]`: every element of an array, every member of an object. */
  | { readonly kind: "every" }
  /** `.**`: every number and boolean below, however deep. */
  | { readonly kind: "leaves" }
  /** `[?@.id=='101']`: the first element whose member of this name has this value. */
  | { readonly kind: "where"; readonly name: string; readonly equals: string };

/** A path, taken apart. */
export interface JsonPath {
  /** As it stands in the configuration. */
  readonly text: string;
  readonly steps: readonly PathStep[];
  /** Whether `[*]` or `.**` is in it, so that it may find several values. */
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

/** The path, or undefined when `text` is none. */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (!text.startsWith("$")) return undefined;
  const steps: PathStep[] = [];
  step.lastIndex = 1;
  while (step.lastIndex < text.length) {
    const groups = step.exec(text)?.groups;
    if (!groups) return undefined;
    steps.push(toStep(groups));
  }
  const leaves = steps.findIndex((each) => typeof each === "object" && each.kind === "leaves");
  if (leaves >= 0 && leaves < steps.length - 1) return undefined;
  return { text, steps, many: steps.some((each) => typeof each === "object" && each.kind !== "where") };
}

/** How many `[*]` and `.**` are in the path. */
export function levelsOf({ steps }: JsonPath): number {
  return steps.filter((each) => typeof each === "object" && each.kind !== "where").length;
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

/** What stands at `path` in `document`; undefined when there is nothing. For paths that find one value. */
export function lookUp(document: unknown, path: JsonPath): unknown {
  let at = document;
  for (const next of path.steps) {
    at = child(at, next);
    if (at === undefined) return undefined;
  }
  return at;
}

/** Where one step leads, if it leads to one place. Inherited members such as `constructor` are not there. */
export function child(outer: unknown, next: PathStep): unknown {
  const parent = typeof outer === "string" ? innerDocument(outer) : outer;
  if (typeof parent !== "object" || parent === null) return undefined;
  if (typeof next === "string") return Array.isArray(parent) ? undefined : member(parent, next);
  if (typeof next === "number") return Array.isArray(parent) ? parent.at(next) : undefined;
  if (next.kind !== "where") return undefined;
  const elements: readonly unknown[] = Array.isArray(parent) ? parent : Object.values(parent);
  return elements.find((element) => {
    const value = typeof element === "object" && element !== null ? member(element, next.name) : undefined;
    return scalarText(value) === next.equals;
  });
}

/** JSON inside a text of JSON, as some gateways wrap it; undefined if it is none. */
export function innerDocument(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** A text, number or boolean as text; undefined for anything else. */
export function scalarText(value: unknown): string | undefined {
  const scalar =
    typeof value === "string" || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
  return scalar ? String(value) : undefined;
}

function member(parent: object, name: string): unknown {
  return Object.hasOwn(parent, name) ? (parent as Readonly<Record<string, unknown>>)[name] : undefined; // an own member
}

/** Field of a schema that takes a path. */
export function payloadPath() {
  return z.string().transform((text, context): JsonPath => {
    const parsed = parseJsonPath(text);
    if (parsed) return parsed;
    context.addIssue({
      code: "custom",
      message: "must be a path into the payload, as in $.t, $.a.b[0], $['x y'], $.list[*].v or $.list[?@.id=='7'].v",
      input: text,
    });
    return z.NEVER;
  });
}
