// Shows a configuration without secrets: as values with their places and the defaults of omitted ones, or as the lines of
// a file.

import { isPair, isScalar, type Node, parseDocument, visit } from "yaml";
import { shownValue } from "../../lib/text/without-secrets.ts";
import { isHidden, isSecretKey, shownLines } from "./excerpt.ts";
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

/**
 * The values below `node`, without tags, since a source may have 100,000. `schemas`: those that may apply here. Without
 * any, the names in the path decide what is secret.
 */
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

/** A value that consists of a reference, which reveals nothing. */
const wholeReference = /^\$\{(?:(?:file|credential):[^}:]*|[A-Za-z_]\w*)\}$/;

/**
 * The lines of a file without secrets and comments. Undefined: it is not YAML, so secrets cannot be recognised. Lines alone do
 * not tell where a value ends, in which map a key of a flow map is, or what an alias repeats; the parser does.
 */
export function shownFile(text: string): readonly string[] | undefined {
  const lines = text.split(/\r?\n/);
  const parsed = withoutSecretValues(text);
  if (parsed === undefined) return undefined;
  const parsedLines = parsed.split(/\r?\n/);
  const found = shownLines(parsed);
  // An unclosed quote that is hidden would no longer tell that the next line belongs to it.
  return shownLines(text).map((line, i) => (parsedLines[i] === lines[i] ? line : (found[i] ?? hidden)));
}

/** `text` with `***` for each value that may be secret, in as many lines. Undefined: it is not YAML. */
function withoutSecretValues(text: string): string | undefined {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, logLevel: "silent" });
  if (document.errors.length > 0) return undefined;
  const secret = new Set<Node>();
  visit(document, {
    Scalar(key, node, ancestors) {
      const names = namesOf(key, ancestors);
      if (key === "key" ? names.some(isSecretKey) : isHidden(names.join("."), [])) secret.add(node);
      else if (typeof node.value === "string" && shownValue(node.value) !== node.value)
        if (!sourceOf(node, text).includes(node.value)) secret.add(node);
    },
    Alias(key, node, ancestors) {
      if (!isHidden(namesOf(key, ancestors).join("."), [])) return;
      visit(node.resolve(document) ?? null, { Scalar: (place, each) => void (place === "key" || secret.add(each)) });
    },
  });
  const ranges = [...secret].flatMap((node) => (isShown(node) || !node.range ? [] : [node.range]));
  let shown = "";
  let done = 0;
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from < done) continue;
    shown += `${text.slice(done, from)}${hidden}${"\n".repeat(text.slice(from, to).split("\n").length - 1)}`;
    done = to;
  }
  return shown + text.slice(done);
}

/** The keys from the document to a node, without its own if it is a key. */
function namesOf(key: unknown, ancestors: readonly unknown[]): readonly string[] {
  const names = ancestors.filter(isPair).map((pair) => String(pair.key));
  return key === "key" ? names.slice(0, -1) : names;
}

function sourceOf({ range }: Node, text: string): string {
  return range ? text.slice(range[0], range[1]) : "";
}

/** Whether the value reveals nothing. */
function isShown(node: Node): boolean {
  return isScalar(node) && (node.value === null || (typeof node.value === "string" && wholeReference.test(node.value)));
}
