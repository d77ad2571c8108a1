// A configuration as written. Nodes have positions, so errors do too, also in other files, templates and defaults.
import { shownKey } from "./excerpt.ts";

export interface Position {
  /** As named on the command line, or as resolved by `include` and `tagsFrom`. */
  readonly file: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
}

export function samePosition(a: Position, b: Position): boolean {
  return a.line === b.line && a.column === b.column && a.file === b.file;
}

interface Placed {
  readonly at: Position;
  /** Where the value was written, which may be in a template: `sources.bus1.devices[0].unit`. */
  readonly path: string;
}

export type ScalarValue = string | number | boolean | null;

export interface ScalarNode extends Placed {
  readonly kind: "scalar";
  readonly value: ScalarValue;
  /** As written, without quotes and with references replaced: `1.0` where `value` is 1. */
  readonly text: string;
  /** The original text if it contains a reference; `text` must then never be shown. */
  readonly reference?: string;
  /** An error was already reported, so schema errors are not. */
  readonly broken?: true;
  /** A possible cause of a wrong value. */
  readonly note?: string;
}

export interface MapEntry {
  readonly key: Position;
  readonly value: ConfigNode;
}
export interface MapNode extends Placed {
  readonly kind: "map";
  readonly entries: ReadonlyMap<string, MapEntry>;
}

export interface ListNode extends Placed {
  readonly kind: "list";
  readonly items: readonly ConfigNode[];
  /** Further entries, created at each call, since 100,000 nodes of tags take 250 MB. Errors appear during iteration. */
  readonly later?: () => Iterable<ConfigNode>;
}

export type ConfigNode = ScalarNode | MapNode | ListNode;

export function childPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  const name = /^[\w.-]+$/.test(key) ? key : JSON.stringify(shownKey(key));
  return path === "" ? name : `${path}.${name}`;
}

export function childNode(node: ConfigNode | undefined, key: PropertyKey): ConfigNode | undefined {
  if (node?.kind === "map") return node.entries.get(String(key))?.value;
  if (node?.kind === "list") return node.items[Number(key)];
  return undefined;
}

export function* entriesOf({ items, later }: ListNode): Generator<ConfigNode, void, undefined> {
  yield* items;
  if (later) yield* later();
}

/** Plain data for a schema. Scalars in `asText` keep their text. */
export function plain(node: ConfigNode, asText: ReadonlySet<ScalarNode>): unknown {
  switch (node.kind) {
    case "scalar":
      return asText.has(node) ? node.text : node.value;
    case "list":
      return node.items.map((item) => plain(item, asText));
    case "map": {
      // Without a prototype, `constructor` is an ordinary key.
      const object: Record<string, unknown> = Object.create(null);
      for (const [key, { value }] of node.entries) object[key] = plain(value, asText);
      return object;
    }
  }
}

export function countNodes(node: ConfigNode): number {
  switch (node.kind) {
    case "scalar":
      return 1;
    case "list":
      return node.items.reduce((sum, item) => sum + countNodes(item), 1);
    case "map":
      return [...node.entries.values()].reduce((sum, { value }) => sum + countNodes(value), 1);
  }
}

const number = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

export function resolveScalar(text: string): ScalarValue {
  if (text.length <= 5) {
    if (/^(?:~|null|Null|NULL)?$/.test(text)) return null;
    if (/^(?:true|True|TRUE)$/.test(text)) return true;
    if (/^(?:false|False|FALSE)$/.test(text)) return false;
  }
  if (number.test(text)) return Number(text);
  if (/^0o[0-7]+$/.test(text) || /^0x[0-9a-fA-F]+$/.test(text)) return Number(text);
  if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return /^\.(?:nan|NaN|NAN)$/.test(text) ? Number.NaN : text;
}
