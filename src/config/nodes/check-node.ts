// Checks part of a configuration against its schema and reports issues with positions.

import type { z } from "zod";
import { reasonOf } from "../../core/errors.ts";
import { shownValue } from "../../lib/text/without-secrets.ts";
import { isHidden } from "./excerpt.ts";
import type { Issues, Place } from "./issue.ts";
import { type ConfigNode, childNode, childPath, type MapNode, plain, type ScalarNode } from "./node.ts";
import { descriptionOf, isSecret, keysOf, messageFor, schemasAt } from "./schema-walk.ts";
import { joinNames, nearest } from "./suggest.ts";

type Issue = z.core.$ZodIssue;

/**
 * The parsed `node`; undefined: invalid, see `issues`. A text is taken literally: `clientId: 0815` is the text 0815.
 */
export function checkNode<Schema extends z.ZodType>(
  schema: Schema,
  node: ConfigNode,
  issues: Issues,
): z.output<Schema> | undefined {
  const asText = new Set<ScalarNode>();
  for (;;) {
    const result = parse(schema, plain(node, asText), node, issues);
    if (result === undefined || result.success) return result?.data;
    const known = asText.size;
    for (const issue of result.error.issues) wantText(issue, node, asText);
    if (asText.size > known) continue;
    for (const issue of result.error.issues) report(issue, schema, node, issues);
    return undefined;
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, node: ConfigNode, issues: Issues) {
  try {
    return schema.safeParse(value, { error: messageFor });
  } catch (error) {
    issues.error(node, `cannot be understood: ${reasonOf(error)}`);
    return undefined;
  }
}

export function nodeAt(node: ConfigNode, path: readonly PropertyKey[]): ConfigNode | undefined {
  let found: ConfigNode | undefined = node;
  for (const key of path) found = childNode(found, key);
  return found;
}

/** Adds to `asText` the scalars that would be valid as texts. */
function wantText(issue: Issue, node: ConfigNode, asText: Set<ScalarNode>): void {
  const found = nodeAt(node, issue.path);
  if (issue.code === "invalid_union" && found)
    for (const branch of issue.errors) for (const inner of branch) wantText(inner, found, asText);
  if (found?.kind !== "scalar" || typeof found.value === "string") return;
  // A missing value is reported as such, unless a reference gave the text `null`.
  if (found.value === null && found.reference === undefined) return;
  const wanted =
    (issue.code === "invalid_type" && issue.expected === "string") ||
    (issue.code === "invalid_value" && issue.values.includes(found.text));
  if (wanted) asText.add(found);
}

function report(issue: Issue, schema: z.ZodType, node: ConfigNode, issues: Issues): void {
  if (issue.code === "unrecognized_keys") return reportUnknown(issue, schema, node, issues);
  if (issue.code === "invalid_union") {
    const nested = likeliest(issue);
    if (nested) {
      for (const inner of nested) report({ ...inner, path: [...issue.path, ...inner.path] }, schema, node, issues);
      return;
    }
  }
  const place = placeAt(node, issue.path);
  if (place.broken) return;
  const known = schemasAt(schema, issue.path);
  const description = known.map(descriptionOf).find((text) => text !== undefined);
  const found = nodeAt(node, issue.path);
  if (!found) {
    const about = issue.code === "custom" ? undefined : description;
    issues.error(place, issue.code === "custom" ? issue.message : "is missing", about ?? hintOf(issue));
    return;
  }
  const message = messageOf(issue, found);
  const near = nearestValue(issue, found);
  const actual =
    /^must (?:be|have) /.test(message) &&
    (found.kind === "scalar" || issue.code !== "custom") &&
    issue.code !== "invalid_key"
      ? shown(found, known)
      : undefined;
  const text = actual === undefined ? message : `${message}, is ${actual}`;
  issues.error(
    place,
    near === undefined ? text : `${text}; did you mean ${near}?`,
    hintFor(found, issue) ?? description,
  );
}

/** The message with referenced values masked, since a schema's message may contain parts of them. */
function messageOf(issue: Issue, found: ConfigNode): string {
  const message = issue.code === "invalid_key" ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  if (found.kind !== "scalar" || found.reference === undefined) return message;
  const parts = [found.text, ...found.text.split(/[\s,;:/.@]+/)].filter(({ length }) => length >= 4);
  return parts.reduce((text, part) => text.replaceAll(part, "***"), message);
}

/** The expectation for a missing field, if its schema states it in its own words. */
function hintOf(issue: Issue): string | undefined {
  return /^must be (?:a text|a number|a map|a list|a whole number|true or false)$/.test(issue.message)
    ? undefined
    : issue.message;
}

function hintFor(found: ConfigNode, issue: Issue): string | undefined {
  if (found.kind !== "scalar") return undefined;
  const quoted = typeof found.value === "string" && found.text.trim() !== "" && Number.isFinite(Number(found.text));
  if (quoted && issue.code === "invalid_type" && (issue.expected === "number" || issue.expected === "int"))
    return "a number stands without quotes";
  return found.note;
}

function reportUnknown(
  { path, keys }: Issue & { code: "unrecognized_keys" },
  schema: z.ZodType,
  node: ConfigNode,
  issues: Issues,
): void {
  const names = schemasAt(schema, path).flatMap(keysOf);
  const owner = nodeAt(node, path);
  if (owner?.kind !== "map") return;
  for (const key of keys) unknownKey(owner, key, names, issues);
}

export function unknownKey(owner: ConfigNode, key: string, names: readonly string[], issues: Issues): void {
  const at = owner.kind === "map" ? (owner.entries.get(key)?.key ?? owner.at) : owner.at;
  const near = nearest(key, names);
  const place = { at, path: childPath(owner.path, key) };
  // `{ scale: 0,1 }`
  if (/^\d+$/.test(key)) issues.error(place, "unknown key", "a number has a decimal point; a comma begins another key");
  else if (near === undefined) issues.error(place, "unknown key", `may be ${joinNames(names.toSorted(), "or")}`);
  else issues.error(place, `unknown key; did you mean ${near}?`);
}

/** Reports the keys of a map that are not among `names`. */
export function unknownKeys(owner: MapNode, names: readonly string[], issues: Issues): void {
  for (const key of owner.entries.keys()) if (!names.includes(key)) unknownKey(owner, key, names, issues);
}

/** The union branch that expects this kind of value, with the fewest issues. */
function likeliest({ errors }: Issue & { code: "invalid_union" }): readonly Issue[] | undefined {
  const kindIsWrong = ({ path, code }: Issue) =>
    path.length === 0 && (code === "invalid_type" || code === "invalid_value" || code === "invalid_union");
  return errors.filter((branch) => !branch.some(kindIsWrong)).toSorted((a, b) => a.length - b.length)[0];
}

function nearestValue(issue: Issue, found: ConfigNode): string | undefined {
  if (issue.code !== "invalid_value" || found.kind !== "scalar" || found.reference !== undefined) return undefined;
  if (!/[a-z]{2}/i.test(found.text)) return undefined;
  return nearest(
    found.text,
    issue.values.filter((value) => typeof value === "string"),
  );
}

/** Position and path of the node at `path`; if it is missing, the position of its parent. */
function placeAt(node: ConfigNode, path: readonly PropertyKey[]): Place & { readonly broken: boolean } {
  let found = node;
  let at = node.at;
  for (const [index, key] of path.entries()) {
    if (found.kind === "scalar" && found.broken) break;
    const next = childNode(found, key);
    if (!next) {
      const rest = path
        .slice(index)
        .reduce<string>((text, part) => childPath(text, typeof part === "number" ? part : String(part)), found.path);
      return { at, path: rest, broken: false };
    }
    // An empty value has no position of its own, so use its key.
    const entry = found.kind === "map" ? found.entries.get(String(key)) : undefined;
    at = next.kind === "scalar" && next.value === null && entry ? entry.key : next.at;
    found = next;
  }
  return { at, path: found.path, broken: found.kind === "scalar" && found.broken === true };
}

/** The found value for a message; undefined if it may be secret. */
function shown(found: ConfigNode, known: readonly z.core.$ZodType[]): string | undefined {
  if (found.kind === "map") return "a map";
  if (found.kind === "list") return "a list";
  if (isHidden(found.path, known)) return undefined;
  if (found.reference !== undefined) return `what ${found.reference} gives`;
  if (found.value === null) return "empty";
  if (found.text === "") return "an empty text";
  const whole = shownValue(found.text);
  const text = whole.length > 80 ? `${whole.slice(0, 77)}...` : whole;
  const safe = text.replace(/\p{Cc}/gu, " ");
  if (typeof found.value !== "string") return safe;
  return resolveQuoted(found) ? `the text "${safe}"` : `"${safe}"`;
}

/** Whether the text would have another type without its quotes. */
function resolveQuoted({ text }: ScalarNode): boolean {
  return Number.isFinite(Number(text)) || text === "true" || text === "false";
}

/** Warns of every literal secret in `node`. */
export function warnLiteralSecrets(schemas: readonly z.core.$ZodType[], node: ConfigNode, issues: Issues): void {
  if (schemas.length === 0) return;
  const below = (key: string | number, value: ConfigNode) => {
    const inner = schemas.flatMap((schema) => schemasAt(schema, [key]));
    warnLiteralSecrets(inner, value, issues);
  };
  if (node.kind === "map") for (const [key, { value }] of node.entries) below(key, value);
  else if (node.kind === "list") for (const [index, item] of node.items.entries()) below(index, item);
  else if (
    node.reference === undefined &&
    !node.broken &&
    node.text !== "" &&
    (schemas.some(isSecret) || holdsPassword(node.text))
  )
    issues.warn(
      node,
      "a secret stands in the file itself",
      "better a reference: ${file:/run/secrets/name}, ${NAME} or, under systemd, ${credential:name}",
    );
}

/** `http://name:password@proxy:3128` */
function holdsPassword(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*:[^/?#]*@/i.test(text);
}
