// Expands `tags`, `devices` and `templates` of a source into a list of complete tags. The fields of a tag come from all
// levels; the innermost one has priority.
import type { Driver } from "../../core/driver.ts";
import { cascadedKeys } from "../format/file-schema.ts";
import { unknownKeys } from "../nodes/check-node.ts";
import type { Issues, Place } from "../nodes/issue.ts";
import {
  type ConfigNode,
  childNode,
  childPath,
  entriesOf,
  type ListNode,
  type MapEntry,
  type MapNode,
  resolveScalar,
  type ScalarNode,
} from "../nodes/node.ts";
import { suggestion } from "../nodes/suggest.ts";

/** A tag with the fields of its device, source, template and the defaults. */
export interface ExpandedTag {
  readonly fields: MapNode;
  /** The entry that the tag comes from: in `tags`, or in `devices` for tags of a template. */
  readonly origin: Place;
}

export interface ExpandParts {
  readonly driver: Driver;
  readonly defaults: Fields;
  readonly templates: Templates;
  readonly issues: Issues;
}

/** The templates of the file, and the names of those in use. */
interface Templates {
  readonly nodes: ReadonlyMap<string, ConfigNode>;
  readonly used: Set<string>;
}

/** Keys of a source that are neither driver options nor inherited by its tags. */
export const sourceKeys: readonly string[] = ["type", "run", "tags", "tagsFrom", "devices", "devicesFrom", "vars"];
const deviceKeys: readonly string[] = ["template", "tags", "tagsFrom", "vars"];
const tagKeys: readonly string[] = ["template", "vars"];

/** Keys of a source that its tags inherit, unless the driver has an option of that name. */
export function cascadedOfSource(driver: Driver): readonly string[] {
  return [...cascadedKeys, ...(driver.device ?? [])].filter((key) => !Object.hasOwn(driver.schema.shape, key));
}

/** A generator, since the nodes of all tags would take far more memory than the tags. */
export function* expandTags(source: MapNode, parts: ExpandParts): Generator<ExpandedTag, void, undefined> {
  const { driver, defaults, issues } = parts;
  const cascaded = cascadedOfSource(driver);
  const fields = layered(defaults, pick(source, cascaded).entries);
  const scope: Scope = { fields, variables: variablesOf(source, new Map(), issues) };
  for (const tag of listOf(source, "tags", issues)) yield* expandTag(tag, scope, parts);
  const devices = childNode(source, "devices");
  if (devices && !driver.device) {
    issues.error({ at: devices.at, path: devices.path }, `${driver.type} has no devices`, "write the tags under tags");
    return;
  }
  for (const device of listOf(source, "devices", issues)) yield* expandDevice(device, scope, parts);
}

interface Scope {
  readonly fields: Fields;
  readonly variables: Variables;
}

function expandDevice(device: MapNode, above: Scope, parts: ExpandParts): readonly ExpandedTag[] {
  const { driver, issues } = parts;
  const cascaded = [...cascadedKeys, ...(driver.device ?? [])];
  unknownKeys(device, [...deviceKeys, ...cascaded], issues);
  const fields = layered(above.fields, pick(device, cascaded).entries);
  const scope: Scope = { fields, variables: variablesOf(device, above.variables, issues) };
  const tags = templateTags(device, parts).map((tag) => made(tag, scope, scope.variables, device));
  // Tags of the template that the device has not overridden yet.
  const open = new Set(tags);
  for (const own of listOf(device, "tags", issues)) {
    const written = substituteAll(own.entries, variablesOf(own, scope.variables, issues));
    // The tag overrides the template's tag with the same input.
    const base = childNode(own, "template")
      ? undefined
      : [...open].find(({ fields }) => sameInput(fields.entries, written));
    if (base) {
      open.delete(base);
      tags[tags.indexOf(base)] = {
        fields: { ...own, entries: layered(base.fields.entries, without(written, tagKeys)) },
        origin: own,
      };
    } else tags.push(...expandTag(own, scope, parts));
  }
  if (!childNode(device, "template") && !childNode(device, "tags"))
    issues.error(device, "has no tags", "write tags, or the name of a template");
  return tags;
}

function expandTag(tag: MapNode, above: Scope, parts: ExpandParts): readonly ExpandedTag[] {
  const variables = variablesOf(tag, above.variables, parts.issues);
  if (!childNode(tag, "template")) return [made(tag, above, variables, tag)];
  const fields = without(tag.entries, tagKeys);
  return templateTags(tag, parts).map((from) => {
    const base = made(from, above, variables, tag);
    return {
      ...base,
      fields: { ...base.fields, entries: layered(base.fields.entries, substituteAll(fields, variables)) },
    };
  });
}

function made(tag: MapNode, { fields }: Scope, variables: Variables, origin: Place): ExpandedTag {
  const entries = substituteAll(layered(fields, without(tag.entries, tagKeys)), variables);
  return { fields: { ...tag, entries }, origin };
}

function without(fields: Fields, keys: readonly string[]): Fields {
  return keys.some((key) => fields.has(key)) ? new Map([...fields].filter(([key]) => !keys.includes(key))) : fields;
}

function sameInput(a: Fields, b: Fields): boolean {
  const text = (fields: Fields) => {
    const input = fields.get("input")?.value;
    return input?.kind === "scalar" ? input.text : undefined;
  };
  return text(a) !== undefined && text(a) === text(b);
}

/** The tags of the template or templates that `owner` names. */
function templateTags(owner: MapNode, { templates, issues }: ExpandParts): readonly MapNode[] {
  const named = childNode(owner, "template");
  if (!named) return [];
  return (named.kind === "list" ? named.items : [named]).flatMap((name) => {
    if (name.kind !== "scalar" || name.value === null) {
      issues.error(name, "must be the name of a template, or a list of names");
      return [];
    }
    const template = templates.nodes.get(name.text);
    if (!template) {
      if (!name.broken)
        issues.error(
          name,
          `there is no template ${name.text}`,
          suggestion(name.text, [...templates.nodes.keys()]) ??
            "templates stand under templates: at the top of the file",
        );
      return [];
    }
    templates.used.add(name.text);
    return template.kind === "list" ? [...mapsOf(template, issues)] : [];
  });
}

/** The `vars` of `node`, which override those from `above`. */
function variablesOf(node: MapNode, above: Variables, issues: Issues): Variables {
  const vars = childNode(node, "vars");
  if (!vars) return above;
  if (vars.kind !== "map") {
    issues.error(vars, "must be a map of names and values, as in { dev: hall1.m1 }");
    return above;
  }
  const variables = new Map(above);
  for (const [name, { key, value }] of vars.entries) {
    const place = { at: key, path: childPath(vars.path, name) };
    if (!/^[A-Za-z_][\w-]*$/.test(name))
      issues.error(place, "invalid name of a variable: use letters, digits, _ and -");
    else if (value.kind !== "scalar") issues.error(value, "must be a single value");
    else variables.set(name, value satisfies ScalarNode);
  }
  return variables;
}

/** The maps in the list at `key`. Anything else is an issue. */
function listOf(owner: MapNode, key: string, issues: Issues): Iterable<MapNode> {
  const list = childNode(owner, key);
  if (!list || (list.kind === "scalar" && list.value === null)) return [];
  if (list.kind === "list") return mapsOf(list, issues);
  const entry = owner.entries.get(key);
  if (!(list.kind === "scalar" && list.broken))
    issues.error(
      { at: entry?.key ?? list.at, path: list.path },
      "must be a list",
      `each entry of ${key} begins with a dash: - { ... }`,
    );
  return [];
}

export function* mapsOf(list: ListNode, issues: Issues): Generator<MapNode, void, undefined> {
  for (const item of entriesOf(list))
    if (item.kind === "map") yield item;
    else if (!(item.kind === "scalar" && item.broken))
      issues.error(item, "must be a map of fields, as in { input: ..., ... }");
}

/** All keys that a tag of this driver may have. */
export function tagNames(driver: Driver): readonly string[] {
  return [...Object.keys(driver.tag.shape), "input", "shared", ...cascadedKeys, ...tagKeys];
}

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
