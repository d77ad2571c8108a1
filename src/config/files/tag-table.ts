// Reads `tagsFrom` and `devicesFrom`: spreadsheets whose rows become entries of the file.
import { dirname, isAbsolute, join } from "node:path";
import { withSlashes } from "../../lib/files/paths.ts";
import { type CellFault, csvRows } from "../../lib/values/csv.ts";
import type { Issues } from "../nodes/issue.ts";
import {
  type ConfigNode,
  childNode,
  childPath,
  entriesOf,
  type ListNode,
  type MapEntry,
  type MapNode,
  type Position,
  resolveScalar,
} from "../nodes/node.ts";
import { type Environment, readTextFile } from "./environment.ts";
import { replaceReferences } from "./references.ts";
import { parseYaml } from "./yaml-file.ts";

/** `root` with the rows of each table appended to the list next to it. */
export async function readTables(root: MapNode, environment: Environment, issues: Issues): Promise<MapNode> {
  const sources = childNode(root, "sources");
  if (sources?.kind !== "map") return root;
  const entries = new Map(sources.entries);
  for (const [name, entry] of sources.entries)
    if (entry.value.kind === "map")
      entries.set(name, { ...entry, value: await readSource(entry.value, environment, issues) });
  return replaced(root, "sources", { ...sources, entries });
}

async function readSource(source: MapNode, environment: Environment, issues: Issues): Promise<MapNode> {
  const whole = await appendRows(await appendRows(source, "tags", environment, issues), "devices", environment, issues);
  const devices = childNode(whole, "devices");
  if (devices?.kind !== "list") return whole;
  const items: ConfigNode[] = [];
  for (const device of devices.items)
    items.push(device.kind === "map" ? await appendRows(device, "tags", environment, issues) : device);
  return replaced(whole, "devices", { ...devices, items });
}

/** Removes `tagsFrom` or `devicesFrom` from `owner` and appends its rows to the list. */
async function appendRows(
  owner: MapNode,
  key: "tags" | "devices",
  environment: Environment,
  issues: Issues,
): Promise<MapNode> {
  const from = `${key}From`;
  const named = owner.entries.get(from);
  if (!named) return owner;
  const rest = new Map(owner.entries);
  rest.delete(from);
  const { value } = named;
  const names = value.kind === "list" ? value.items : [value];
  const rows: Rows[] = [];
  for (const name of names) {
    if (name.kind !== "scalar" || name.value === null)
      issues.error(name, "must be the name of a CSV file, or a list of names");
    else if (!name.broken) rows.push(await readTable(name.text, name, environment, issues));
  }
  const list = owner.entries.get(key)?.value;
  const place = { kind: "list", at: value.at, path: childPath(owner.path, key) } as const;
  const before: ListNode = list?.kind === "list" ? list : { ...place, items: [] };
  const all = function* () {
    yield* entriesOf(before);
    for (const some of rows) yield* some();
  };
  const written: ListNode = key === "tags" ? { ...place, items: [], later: all } : { ...place, items: [...all()] };
  // The reader of the list reports a value that is not a list.
  if (!list || list.kind === "list" || (list.kind === "scalar" && list.value === null))
    rest.set(key, { key: named.key, value: written });
  return { ...owner, entries: rest };
}

/** The entries of a table, created again at each call (see `ListNode.later`). */
type Rows = () => Iterable<ConfigNode>;

const noRows: Rows = () => [];

async function readTable(name: string, node: ConfigNode, environment: Environment, issues: Issues): Promise<Rows> {
  const file = isAbsolute(name) ? name : withSlashes(join(dirname(node.at.file), name));
  const text = await readTextFile(file, node, environment, issues);
  if (text === undefined) return noRows;
  const { rows, decimalComma, broken } = parseCsv(text);
  const place = ({ line, column }: Cell): Position => ({ file, line, column });
  if (broken) {
    issues.error({ at: place(broken), path: node.path }, broken.fault);
    return noRows;
  }
  const [header] = rows();
  if (!header) {
    issues.error(
      { at: { file, line: 1, column: 1 }, path: node.path },
      "is empty",
      "the first row names the columns: input, at, scale, signal.engUnit ...",
    );
    return noRows;
  }
  const twice = header.find(({ text }, i) => text !== "" && header.findIndex((other) => other.text === text) < i);
  if (twice) issues.error({ at: place(twice), path: node.path }, `column ${twice.text} stands here twice`);
  const entries = () => entriesOfTable(header, rows().drop(1), { decimalComma, file, path: node.path, issues });
  if (!text.includes("${")) return entries;
  const list: ListNode = { kind: "list", at: node.at, path: node.path, items: [...entries()] };
  const { items } = await replaceReferences(list, environment, issues);
  return () => items;
}

interface TableParts {
  readonly decimalComma: boolean;
  readonly file: string;
  /** Path of the key that names the table. */
  readonly path: string;
  readonly issues: Issues;
}

function* entriesOfTable(
  header: Cells,
  rows: Iterable<Cells>,
  { decimalComma, file, path: tablePath, issues }: TableParts,
): Generator<MapNode, void, undefined> {
  const place = ({ line, column }: Cell): Position => ({ file, line, column });
  let index = 0;
  for (const cells of rows) {
    const path = childPath(tablePath, index++);
    const extra = cells.slice(header.length).find((cell) => cell.text !== "");
    if (extra)
      issues.error(
        { at: place(extra), path },
        "stands in a column without a name",
        "a text with the separator in it needs quotes",
      );
    const at = place(cells[0] ?? { text: "", line: 1, column: 1 });
    const entry: Entry = { kind: "map", at, path, entries: new Map() };
    for (const [i, column] of header.entries()) {
      const cell = cells[i];
      if (cell && cell.text !== "" && column.text !== "")
        put(
          entry,
          column.text.split("."),
          place(column),
          valueOf(cell, place(cell), childPath(path, column.text), decimalComma, issues),
        );
    }
    yield entry;
  }
}

/** A cell is an unquoted value, or a list or map in brackets or braces. */
function valueOf({ text }: Cell, at: Position, path: string, decimalComma: boolean, issues: Issues): ConfigNode {
  if (/^[[{].*[\]}]$/s.test(text) && !/^\{[\w-]+\}/.test(text)) {
    const node = parseYaml(text, at.file, issues, at);
    return node ?? { kind: "scalar", at, path, value: null, text, broken: true };
  }
  const plain = decimalComma && /^[-+]?\d+,\d+(?:[eE][-+]?\d+|\s?%)?$/.test(text) ? text.replace(",", ".") : text;
  return { kind: "scalar", at, path, value: resolveScalar(plain), text: plain };
}

interface Entry extends MapNode {
  readonly entries: Map<string, MapEntry>;
}

/** Combines columns such as `signal.engUnit` and `signal.name` into one map. */
function put(owner: Entry, [key = "", ...rest]: readonly string[], column: Position, value: ConfigNode): void {
  if (rest.length === 0) {
    owner.entries.set(key, { key: column, value });
    return;
  }
  const given = owner.entries.get(key)?.value;
  const before = given?.kind === "map" ? given : undefined;
  const entries = new Map(before?.entries);
  const inner: Entry = { kind: "map", at: before?.at ?? value.at, path: childPath(owner.path, key), entries };
  put(inner, rest, column, value);
  owner.entries.set(key, { key: column, value: inner });
}

function replaced(node: MapNode, key: string, value: ConfigNode): MapNode {
  const entry = node.entries.get(key);
  return entry ? { ...node, entries: new Map(node.entries).set(key, { ...entry, value }) } : node;
}

export interface Cell {
  readonly text: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
}

type Cells = readonly Cell[];

interface Table {
  /** The header and the rows, parsed again at each call. Omits empty rows and comments (starting with `#`). */
  readonly rows: () => Generator<Cells, void, undefined>;
  readonly decimalComma: boolean;
  /** The first invalid cell, if any. */
  readonly broken: (Cell & { readonly fault: CellFault }) | undefined;
}

/** Detects the dialect: separator, decimal comma, comments. `csvRows` reads quotes and line ends. */
export function parseCsv(given: string): Table {
  const text = given.replace(/^\ufeff/, "");
  // Spreadsheets may declare the separator in a line before the header.
  const named = /^sep=([,;\t|])\r?\n/i.exec(text);
  const separator = named?.[1] ?? separatorOf(text);
  // Spreadsheets that use a semicolon also use a decimal comma.
  const decimalComma = separator === ";";
  const body = text.slice(named?.[0].length ?? 0);
  const firstLine = named ? 2 : 1;
  let broken: Table["broken"];
  const onCell = (of: string, line: number, column: number, fault: CellFault | undefined) => {
    if (fault) broken ??= { text: of, line, column, fault };
  };
  for (const _row of csvRows(body, separator, onCell, firstLine));
  const cellOf = (of: string, line: number, column: number): Cell => ({ text: of, line, column });
  return { rows: () => filled(csvRows(body, separator, cellOf, firstLine)), decimalComma, broken };
}

function* filled(rows: Iterable<Cells>): Generator<Cells, void, undefined> {
  for (const row of rows) if (row.some(({ text }) => text !== "") && !row[0]?.text.startsWith("#")) yield row;
}

function separatorOf(text: string): string {
  const header = text.split(/\r?\n/).find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].toSorted((a, b) => count(b) - count(a))[0] ?? ",";
}
