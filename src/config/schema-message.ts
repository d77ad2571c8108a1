// What zod found wrong, in the words of a configuration. Texts that a schema brings with it go before these.
import type { z } from "zod";
import { unreachable } from "../core/unreachable.ts";
import { boundsOf } from "./schema-walk.ts";
import { listed } from "./suggest.ts";

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
      return `must be ${listed(issue.values.map(String), "or")}`;
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
  return wanted.length === 0 ? "is not what may stand here" : `must be ${listed([...new Set(wanted)], "or")}`;
}
