// Merges the fields of a tag from all levels; the innermost level has priority.
import type { ConfigNode, MapEntry, MapNode, ScalarNode } from "../nodes/node.ts";
import { resolveScalar } from "../nodes/node.ts";

export type Fields = ReadonlyMap<string, MapEntry>;

/** Fields that are merged key by key. A tag's `report.deadband` keeps the `report.heartbeat` of the defaults. */
const combined = new Set(["report", "signal", "labels", "annotations", "valid"]);

export function layered(below: Fields, above: Fields): Fields {
  if (below.size === 0) return above;
  const fields = new Map(below);
  for (const [key, entry] of above) {
    const under = fields.get(key)?.value;
    const value = combined.has(key) && under ? combine(under, entry.value) : entry.value;
    fields.set(key, { key: entry.key, value });
  }
  return fields;
}

function combine(below: ConfigNode, above: ConfigNode): ConfigNode {
  if (below.kind !== "map" || above.kind !== "map") return above;
  return { ...above, entries: layered(below.entries, above.entries) };
}

export function pick(node: MapNode, keys: readonly string[]): MapNode {
  return { ...node, entries: new Map([...node.entries].filter(([key]) => keys.includes(key))) };
}

/** Variables by name, as written. */
export type Variables = ReadonlyMap<string, ScalarNode>;

/** `node` with each `{name}` of a variable replaced. Other names remain for captures. */
function substitute<T extends ConfigNode>(node: T, variables: Variables): T;
function substitute(node: ConfigNode, variables: Variables): ConfigNode {
  if (variables.size === 0) return node;
  switch (node.kind) {
    case "list":
      return { ...node, items: node.items.map((item) => substitute(item, variables)) };
    case "map":
      return { ...node, entries: substituteAll(node.entries, variables) };
    case "scalar":
      return node.text.includes("{") ? substituteText(node, variables) : node;
  }
}

export function substituteAll(fields: Fields, variables: Variables): Fields {
  if (variables.size === 0) return fields;
  return new Map([...fields].map(([key, entry]) => [key, { ...entry, value: substitute(entry.value, variables) }]));
}

function substituteText(node: ScalarNode, variables: Variables): ScalarNode {
  const used: ScalarNode[] = [];
  const places: string[] = [];
  const text = node.text.replace(/\{([A-Za-z_][\w-]*)\}/g, (written, name: string) => {
    const variable = variables.get(name);
    if (!variable) return written;
    used.push(variable);
    const { file, line, column } = variable.at;
    places.push(`${written} stands in ${file}:${line}:${column}`);
    return variable.text;
  });
  if (used.length === 0) return node;
  const reference = node.reference ?? used.find((variable) => variable.reference !== undefined)?.reference;
  return {
    ...node,
    text,
    value: text === "" ? "" : resolveScalar(text),
    // The template may serve many devices.
    note: places.join(", "),
    ...(reference !== undefined && { reference }),
    ...(used.some(({ broken }) => broken) && { broken: true }),
  };
}
