// Replaces `${NAME}`, `${NAME:-default}`, `${file:/path}` and `${credential:name}` in the scalars of a configuration.
import { basename, dirname, resolve } from "node:path";
import { fileProblem } from "../../lib/files/paths.ts";
import type { Issues } from "../nodes/issue.ts";
import type { ConfigNode, ScalarNode } from "../nodes/node.ts";
import { resolveScalar } from "../nodes/node.ts";
import type { Environment } from "./environment.ts";

/** The replacement of a reference, or an error. */
type Found = { readonly text: string } | { readonly error: string; readonly hint?: string };

/** `node` with references replaced; unresolved ones are issues. Files are relative to the one that names them. */
export async function replaceReferences<T extends ConfigNode>(
  node: T,
  environment: Environment,
  issues: Issues,
): Promise<T>;
export async function replaceReferences(
  node: ConfigNode,
  environment: Environment,
  issues: Issues,
): Promise<ConfigNode> {
  const scalars: ScalarNode[] = [];
  collect(node, scalars, new Set());
  if (scalars.length === 0) return node;
  const files = new Map<string, Promise<Found>>();
  const read = (path: string) => {
    const reading = files.get(path) ?? readText(path, environment);
    files.set(path, reading);
    return reading;
  };
  const replaced = new Map<ConfigNode, ConfigNode>();
  for (const scalar of scalars) replaced.set(scalar, await replaceIn(scalar, environment, read, issues));
  return rebuild(node, replaced);
}

function collect(node: ConfigNode, into: ScalarNode[], seen: Set<ConfigNode>): void {
  if (seen.has(node)) return;
  seen.add(node);
  if (node.kind === "scalar") {
    if (node.text.includes("${")) into.push(node);
  } else if (node.kind === "list") for (const item of node.items) collect(item, into, seen);
  else for (const { value } of node.entries.values()) collect(value, into, seen);
}

/** Keeps shared nodes (aliases) shared, and reuses nodes without references. */
function rebuild(node: ConfigNode, done: Map<ConfigNode, ConfigNode>): ConfigNode {
  if (node.kind === "scalar") return done.get(node) ?? node;
  const known = done.get(node);
  if (known) return known;
  let made: ConfigNode = node;
  if (node.kind === "list") {
    const items = node.items.map((item) => rebuild(item, done));
    if (items.some((item, index) => item !== node.items[index])) made = { ...node, items };
  } else {
    const values = [...node.entries].map(([key, entry]) => ({ key, entry, value: rebuild(entry.value, done) }));
    if (values.some(({ entry, value }) => entry.value !== value))
      made = { ...node, entries: new Map(values.map(({ key, entry, value }) => [key, { ...entry, value }])) };
  }
  done.set(node, made);
  return made;
}

async function replaceIn(
  scalar: ScalarNode,
  environment: Environment,
  read: (path: string) => Promise<Found>,
  issues: Issues,
): Promise<ScalarNode> {
  let text = "";
  let end = 0;
  let count = 0;
  // `$${` is an escaped `${`. A reference ends at its first `}`.
  for (const match of scalar.text.matchAll(/\$\$\{|\$\{([^}]*)\}?/g)) {
    text += scalar.text.slice(end, match.index);
    end = match.index + match[0].length;
    if (match[0] === "$${") {
      text += "${";
      continue;
    }
    count++;
    const found: Found = match[0].endsWith("}")
      ? await find(match[1] ?? "", scalar, environment, read)
      : { error: "has a reference without its closing brace" };
    if ("error" in found) {
      issues.error(scalar, found.error, found.hint ?? "write $${ for a literal ${");
      return { ...scalar, broken: true };
    }
    text += found.text;
  }
  text += scalar.text.slice(end);
  if (count === 0) return { ...scalar, text, value: text };
  // An empty reference gives an empty text, not a missing value.
  return { ...scalar, text, value: text === "" ? "" : resolveScalar(text), reference: scalar.text };
}

async function find(
  inside: string,
  scalar: ScalarNode,
  { variables, cwd }: Environment,
  read: (path: string) => Promise<Found>,
): Promise<Found> {
  // The text behind the brace that ends it would follow the value.
  if (inside.includes("{"))
    return {
      error: "has a brace in a reference, which ends at the first closing brace",
      hint: "a default is a text without braces; give the variable a value where the agent is started",
    };
  const [, kind, rest = ""] = /^(file|credential):(.*)$/s.exec(inside) ?? [];
  if (kind === "file")
    return rest === "" ? { error: "names no file" } : read(resolve(cwd, dirname(scalar.at.file), rest));
  if (kind === "credential") {
    const folder = variables.CREDENTIALS_DIRECTORY;
    if (rest === "" || basename(rest) !== rest || rest === "..")
      return { error: `invalid name of a credential: ${rest}` };
    if (folder === undefined)
      return {
        error: `credential ${rest} cannot be read: there is no $CREDENTIALS_DIRECTORY`,
        hint: "systemd sets it for units with LoadCredential=; elsewhere use ${file:/path}",
      };
    return read(resolve(folder, rest));
  }
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside) ?? [];
  if (name === undefined)
    return {
      error: "invalid reference between ${ and }",
      hint: "may be ${NAME}, ${NAME:-default}, ${file:/path} or ${credential:name}; written with $${ it is a text",
    };
  // Ignores inherited properties such as `constructor`.
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (fallback !== undefined) return { text: value === undefined || value === "" ? fallback : value };
  if (value !== undefined) return { text: value };
  return {
    error: `environment variable ${name} is not set`,
    hint: `set it where the agent is started, or write \${${name}:-default}`,
  };
}

async function readText(path: string, environment: Environment): Promise<Found> {
  let bytes: Uint8Array;
  try {
    bytes = await environment.readFile(path);
  } catch (error) {
    return {
      error: `cannot read ${path}: ${fileProblem(error)}`,
      hint: "the user of the agent must be able to read it",
    };
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { text: text.replace(/\r?\n$/, "") };
  } catch {
    return { error: `${path} holds no UTF-8 text` };
  }
}
