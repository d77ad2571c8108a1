// Adds tags to a source in the text of a configuration file. Every other line stays as it is. Pure.
import {
  type Document,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { z } from "zod";
import type { BrowsedNode } from "../../core/commissioning.ts";
import { AgentError } from "../../core/errors.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { deviceLines } from "../tags/browsed.ts";

/** What is written otherwise, as a table or a template, counts as empty. */
const writtenTags = z.array(z.record(z.string(), z.unknown())).catch([]);
const writtenSource = z.object({
  tags: writtenTags,
  devices: z.array(z.object({ unit: z.unknown(), tags: writtenTags })).catch([]),
});

/** A tag as the text of one YAML flow map. `unit`: the device that has it. */
export interface NewTag {
  readonly unit?: number | undefined;
  readonly text: string;
}

/** Throws `CONFIG_INVALID` if the tags of the source are not written as a list in this file. */
export function addTags(text: string, source: string, tags: readonly NewTag[]): string {
  const byUnit = Map.groupBy(tags, ({ unit }) => unit);
  let result = text;
  for (const [unit, ofUnit] of byUnit) {
    const texts = ofUnit.map((tag) => tag.text);
    const path = ["sources", source];
    result = unit === undefined ? append(result, path, "tags", texts) : inDevice(result, path, unit, texts);
  }
  return result;
}

/** Whether the text defines the source. False if it is not YAML. */
export function definesSource(text: string, source: string): boolean {
  return isMap(documentOf(text).getIn(["sources", source], true));
}

/** Input IDs of the tags of the source that are written with the same fields, as `node`, or `unit` and `at`. */
export function tagsLike(text: string, source: string, wanted: readonly BrowsedNode["tag"][]): readonly string[] {
  const written = writtenSource.safeParse(attempt(() => documentOf(text).toJS().sources[source]));
  const { tags = [], devices = [] } = written.data ?? {};
  const ofDevices = devices.flatMap((device) => device.tags.map((tag) => ({ ...tag, unit: device.unit })));
  const entries: readonly BrowsedNode["tag"][] = [...tags, ...ofDevices];
  const indices = new Map<string, Map<string, unknown>>();
  return wanted.flatMap((tag) => {
    const keys = Object.keys(tag).filter((key) => key !== "input");
    const fields = (of: BrowsedNode["tag"]) => JSON.stringify(keys.map((key) => of[key]));
    const index = indices.get(keys.join()) ?? new Map(entries.map((entry) => [fields(entry), entry["input"]]));
    indices.set(keys.join(), index);
    const input = index.get(fields(tag));
    return typeof input === "string" ? [input] : [];
  });
}

function inDevice(text: string, path: Path, unit: number, tags: readonly string[]): string {
  const devices = documentOf(text).getIn([...path, "devices"], true);
  const index = isSeq(devices) ? devices.items.findIndex((item) => isMap(item) && unitOf(item) === unit) : -1;
  if (index >= 0) return append(text, [...path, "devices", index], "tags", tags);
  const lines = deviceLines(unit, tags.map(asLine));
  return append(text, path, "devices", [`{ unit: ${unit}, tags: [${tags.join(", ")}] }`], lines);
}

function unitOf(device: YAMLMap): unknown {
  const unit = device.get("unit");
  return typeof unit === "string" ? Number(unit) : unit;
}

type Path = readonly (string | number)[];

function asLine(item: string): string {
  return `- ${item}`;
}

/**
 * Appends items to the list `key` of the map at `path`: `flow` in flow style, `lines` in block style. The list is
 * created if it is missing or empty.
 */
function append(
  text: string,
  path: Path,
  key: string,
  flow: readonly string[],
  lines: readonly string[] = flow.map(asLine),
): string {
  const document = documentOf(text);
  const map = document.getIn(path, true);
  if (!isMap(map)) throw notAList(path, key);
  const list = map.get(key, true);
  if (isSeq(list) && list.range && list.items.length > 0) {
    if (list.flow) return insert(text, endOfItems(list), `, ${flow.join(", ")}`);
    return insertLines(text, endOfLast(text, list), columnOf(text, list.range[0]), lines);
  }
  if (list !== undefined && !isEmpty(list)) throw notAList(path, key);
  if (isInFlow(document, path)) {
    const items = `[${flow.join(", ")}]`;
    if (list?.range && list.range[1] > list.range[0])
      return text.slice(0, list.range[0]) + items + text.slice(list.range[1]);
    if (list === undefined && map.flow) return insert(text, endOfItems(map), `, ${key}: ${items}`);
    throw notAList(path, key);
  }
  const pair = map.items.find((item) => isScalar(item.key) && item.key.value === key);
  const [first] = map.items;
  if (!first || !isScalar(first.key) || !first.key.range) throw notAList(path, key);
  const indent = columnOf(text, first.key.range[0]);
  if (!pair) return insertLines(text, endOfLast(text, map), indent, [`${key}:`, ...lines.map((line) => `  ${line}`)]);
  // `tags: []   # comment` or `tags:`
  const after = isScalar(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  const colon = text.indexOf(":", after) + 1;
  const end = list?.range && list.range[1] > list.range[0] ? list.range[1] : colon;
  const emptied = text.slice(0, colon) + text.slice(end);
  return insertLines(emptied, endOfLine(emptied, colon), indent + 2, lines);
}

function isEmpty(node: unknown): boolean {
  return (isSeq(node) && node.items.length === 0) || (isScalar(node) && (node.value === null || node.value === ""));
}

function isInFlow(document: Document, path: Path): boolean {
  return [...path.keys(), path.length].some((length) => {
    const node = document.getIn(path.slice(0, length), true);
    return isCollection(node) && node.flow === true;
  });
}

/** Where the last item of a flow list or map ends. */
function endOfItems(list: YAMLSeq | YAMLMap): number {
  const item = list.items.at(-1);
  const last: unknown = isPair(item) ? (item.value ?? item.key) : item;
  const range = isScalar(last) || isCollection(last) ? last.range : undefined;
  return range?.[1] ?? (list.range?.[1] ?? 1) - 1;
}

/** The start of the line after the last value in a block collection. */
function endOfLast(text: string, node: unknown): number {
  let last: unknown = node;
  let end = 0;
  while (last !== undefined && last !== null) {
    const collection = isCollection(last) ? last : undefined;
    const range = isScalar(last) || collection ? (last as YAMLSeq).range : undefined;
    if (!collection || collection.flow || collection.items.length === 0) {
      end = Math.max(end, range?.[1] ?? 0);
      break;
    }
    const item: unknown = collection.items.at(-1);
    last = isMap(collection) ? (collection.items.at(-1)?.value ?? collection.items.at(-1)?.key) : item;
  }
  return text[end - 1] === "\n" ? end : endOfLine(text, end);
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

function columnOf(text: string, offset: number): number {
  return offset - (text.lastIndexOf("\n", offset - 1) + 1);
}

function insertLines(text: string, at: number, indent: number, lines: readonly string[]): string {
  const before = at > 0 && text[at - 1] !== "\n" ? "\n" : "";
  return insert(text, at, before + lines.map((line) => `${" ".repeat(indent)}${line}\n`).join(""));
}

function insert(text: string, at: number, added: string): string {
  return text.slice(0, at) + added + text.slice(at);
}

function documentOf(text: string) {
  // A source may be called 1 or true.
  return parseDocument(text, { prettyErrors: false, uniqueKeys: false, stringKeys: true });
}

function notAList(path: Path, key: string): AgentError {
  return new AgentError("CONFIG_INVALID", `${path.join(".")}.${key} is not a list in this file`, {
    hint: "write the list here, or add the tags by hand",
  });
}
