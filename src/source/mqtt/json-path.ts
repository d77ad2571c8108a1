// The subset of JSONPath that finds values in payloads: `$.a.b[0]['x y'][*]`. Parsed once, followed per message. Pure.
import { z } from "zod";

/** One step: a member by name, an element by index (from the end if negative), or every element. */
export type PathStep = string | number | typeof everyElement;
/** Stands for `[*]`. */
export const everyElement = null;

/** A path, taken apart. */
export interface JsonPath {
  /** As it stands in the configuration. */
  readonly text: string;
  readonly steps: readonly PathStep[];
  /** Whether `[*]` is in it, so that it may find several values. */
  readonly many: boolean;
}

const step =
  /\.([A-Za-z_\u0080-\uffff][\w\-\u0080-\uffff]*)|\.(\*)|\[(\*)\]|\[(-?\d{1,9})\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]/y;

/** The path, or undefined when `text` is none. */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (!text.startsWith("$")) return undefined;
  const steps: PathStep[] = [];
  step.lastIndex = 1;
  while (step.lastIndex < text.length) {
    const match = step.exec(text);
    if (!match) return undefined;
    const [, name, star, every, index, quoted] = match;
    if (name !== undefined) steps.push(name);
    else if (star !== undefined || every !== undefined) steps.push(everyElement);
    else if (index !== undefined) steps.push(Number(index));
    else if (quoted !== undefined) steps.push(quoted.slice(1, -1).replaceAll(/\\(.)/g, "$1"));
  }
  return { text, steps, many: steps.includes(everyElement) };
}

/** What stands at `path` in `document`; undefined when there is nothing. For paths without `[*]`. */
export function lookUp(document: unknown, path: JsonPath): unknown {
  let at = document;
  for (const next of path.steps) {
    at = child(at, next);
    if (at === undefined) return undefined;
  }
  return at;
}

/** The element or member that one step leads to. Inherited members such as `constructor` are not there. */
export function child(parent: unknown, step: PathStep): unknown {
  if (typeof parent !== "object" || parent === null || step === everyElement) return undefined;
  if (typeof step === "number") return Array.isArray(parent) ? parent.at(step) : undefined;
  if (Array.isArray(parent) || !Object.hasOwn(parent, step)) return undefined;
  return (parent as Readonly<Record<string, unknown>>)[step]; // an own member, as just checked
}

/** Field of a schema that takes a path. */
export function payloadPath() {
  return z.string().transform((text, context): JsonPath => {
    const parsed = parseJsonPath(text);
    if (parsed) return parsed;
    context.addIssue({
      code: "custom",
      message: "must be a path into the payload, as in $.t, $.a.b[0], $['x y'] or $.list[*].v",
      input: text,
    });
    return z.NEVER;
  });
}
