// Parses YAML into nodes with positions.
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type YAMLSeq } from "yaml";
import { shownKey } from "../nodes/excerpt.ts";
import type { Issues } from "../nodes/issue.ts";
import {
  type ConfigNode,
  childPath,
  countNodes,
  type ListNode,
  type MapEntry,
  type Position,
  resolveScalar,
} from "../nodes/node.ts";
import { type Lengths, type LongList, longLists, Skeleton } from "./long-lists.ts";
import { explain, oddSpace, unclosedQuote } from "./yaml-hints.ts";

/** More than the tags and fields of any plant. Nested aliases would otherwise fill the memory. */
const maxNodes = 2_000_000;

/** Parsing a piece of this length takes about 4 MB. */
const usual: Lengths = { list: 1_000, piece: 32_768 };

/**
 * The nodes of `text`. Undefined: invalid or empty, see `issues`. `origin`: the position of all nodes if the text is
 * part of something else. Issues of a long list of tags appear during iteration.
 */
export function parseYaml(
  text: string,
  file: string,
  issues: Issues,
  origin?: Position,
  lengths = usual,
): ConfigNode | undefined {
  const source: Source = { text, position: origin ? () => origin : positionsOf(text, file), issues };
  const fallback = { file, line: 1, column: 1 };
  const lists = longLists(text, lengths);
  const marker = `long-list-${text.length}-`;
  if (lists.length > 0 && !text.includes(marker)) {
    const skeleton = new Skeleton(text, lists, marker);
    const document = parse(skeleton.text, source, (offset) => skeleton.original(offset));
    if (!document) return undefined;
    if (skeleton.isTrue(document)) return new Reader(source, skeleton).read(document.contents, "", fallback);
  }
  const document = parse(text, source, (offset) => offset);
  if (!document) return undefined;
  if (document.contents === null || (isScalar(document.contents) && document.contents.source === "")) {
    issues.error({ at: fallback, path: "" }, "is empty");
    return undefined;
  }
  return new Reader(source).read(document.contents, "", fallback);
}

interface Source {
  readonly text: string;
  readonly position: (offset: number) => Position;
  readonly issues: Issues;
}

function positionsOf(text: string, file: string): (offset: number) => Position {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
  return (offset) => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
}

/** Undefined: `text` is not valid YAML. `original` maps its offsets to the source. */
function parse(text: string, source: Source, original: (offset: number) => number): Document.Parsed | undefined {
  // The failsafe schema leaves scalars as texts. `resolveScalar` interprets them, as it does for references.
  const document = parseDocument(text, { schema: "failsafe", uniqueKeys: false, prettyErrors: false });
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length === 0) return document;
  const unclosed = unclosedQuote(text);
  const at = unclosed && source.position(original(unclosed.offset));
  // Errors after an unclosed quote result from it.
  if (unclosed && at && wrong.every(({ pos }) => pos[0] >= unclosed.offset)) {
    source.issues.error(
      { at, path: "" },
      `is not YAML here: the quote ${unclosed.quote} that begins here is not closed`,
      "close it in this line",
    );
    return undefined;
  }
  const lines = source.text.split(/\r?\n/);
  const seen = new Set<number>();
  for (const [index, { code, message, pos }] of wrong.entries()) {
    const at = source.position(original(pos[0]));
    const { message: shown, hint, certain } = explain(code, message, lines[at.line - 1] ?? "", at.column);
    // One mistake causes many errors. Of the later ones, only independent ones are reported.
    if (seen.has(at.line) || seen.size >= 20 || (index > 0 && !certain)) continue;
    seen.add(at.line);
    const odd = oddSpace(lines, at.line);
    if (odd)
      source.issues.error(
        { at: { ...at, ...odd }, path: "" },
        "has a space here that is none in YAML, such as a no-break space",
        "type a space in its place; text copied from a page or document contains such ones",
      );
    else source.issues.error({ at, path: "" }, shown, hint);
  }
  return undefined;
}

/** A list of tags is iterated once, unlike templates and devices. */
const isTags = (path: string) => /^sources\.[^[\]]+\.tags$/.test(path);
/** An anchor or alias depends on preceding text; a reference needs a file to be replaced. */
const dependent = /[\s,[{][&*]|\$\{/;

/** Converts the library's nodes. Aliases share the node of their anchor. */
class Reader {
  readonly #source: Source;
  readonly #issues: Issues;
  readonly #skeleton: Skeleton | undefined;
  /** Maps the offset of a node to the source. */
  #original: (offset: number) => number;
  readonly #anchors = new Map<string, { readonly node: ConfigNode; readonly size: number }>();
  #nodes = 0;

  constructor(source: Source, skeleton?: Skeleton, original?: (offset: number) => number) {
    this.#source = source;
    this.#issues = source.issues;
    this.#skeleton = skeleton;
    this.#original = original ?? ((offset) => skeleton?.original(offset) ?? offset);
  }

  /** `fallback`: the position for a node that is absent in the text. */
  read(node: unknown, path: string, fallback: Position): ConfigNode {
    this.#nodes++;
    if (isAlias(node)) return this.#alias(node.source, path, this.#at(node, fallback));
    const at = this.#at(node, fallback);
    const read = this.#plain(node, path, at);
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      const { anchor } = node;
      if (anchor !== undefined) this.#anchors.set(anchor, { node: read, size: countNodes(read) });
    }
    return read;
  }

  #at(node: unknown, fallback: Position): Position {
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    return range ? this.#source.position(this.#original(range[0])) : fallback;
  }

  #plain(node: unknown, path: string, at: Position): ConfigNode {
    if (isMap(node)) return { kind: "map", at, path, entries: this.#entries(node.items, path, at) };
    if (isSeq(node)) return this.#list(node, path, at);
    const text = isScalar(node) ? String(node.source ?? "") : "";
    const quoted = isScalar(node) && (node.type !== "PLAIN" || node.tag === "tag:yaml.org,2002:str");
    const value = quoted ? text : resolveScalar(text);
    const note = text === "" && !quoted ? emptyNote(node, this.#source.text, this.#original) : undefined;
    return { kind: "scalar", at, path, value, text, ...(note !== undefined && { note }) };
  }

  #list(node: YAMLSeq, path: string, at: Position): ListNode {
    const list = node.items.length === 1 ? this.#skeleton?.listOf(node.items[0]) : undefined;
    if (list && node.anchor === undefined && isTags(path)) {
      const { text } = this.#source;
      if (!dependent.test(text.slice(list.from, list.to)))
        return {
          kind: "list",
          at,
          path,
          items: [],
          later: () => new Reader(this.#source).#entriesOf(list, 0, path, at),
        };
    }
    const items: ConfigNode[] = [];
    for (const item of node.items) {
      const inner = this.#skeleton?.listOf(item);
      if (inner) for (const entry of this.#entriesOf(inner, items.length, path, at)) items.push(entry);
      else items.push(this.read(item, childPath(path, items.length), at));
    }
    return { kind: "list", at, path, items };
  }

  /** The nodes of a long list, piece by piece. Ends at the first invalid piece. */
  *#entriesOf({ pieces, to }: LongList, first: number, path: string, at: Position): Generator<ConfigNode> {
    let index = first;
    for (const [number, from] of pieces.entries()) {
      const within = (offset: number) => from + offset;
      const document = parse(this.#source.text.slice(from, pieces[number + 1] ?? to), this.#source, within);
      if (!document || !isSeq(document.contents)) return;
      const outside = this.#original;
      this.#original = within;
      const nodes = document.contents.items.map((item) => this.read(item, childPath(path, index++), at));
      this.#original = outside;
      yield* nodes;
    }
  }

  #alias(name: string, path: string, at: Position): ConfigNode {
    const anchor = this.#anchors.get(name);
    this.#nodes += anchor?.size ?? 0;
    if (anchor && this.#nodes <= maxNodes) return anchor.node;
    if (anchor) this.#issues.error({ at, path }, "makes the file too large: aliases of aliases");
    else
      this.#issues.error(
        { at, path },
        "begins with *, which refers to an anchor, and there is none of this name above",
        "a text that begins with * must stand in quotes",
      );
    return broken({ at, path });
  }

  #entries(pairs: readonly unknown[], path: string, at: Position): Map<string, MapEntry> {
    const entries = new Map<string, MapEntry>();
    const merged: ConfigNode[] = [];
    for (const pair of pairs) {
      if (!isPair(pair)) continue;
      const key = this.#at(pair.key, at);
      if (!isScalar(pair.key)) {
        this.#issues.error(
          { at: key, path },
          "has a key that is not text",
          "a text with braces or brackets needs quotes",
        );
        continue;
      }
      const name = String(pair.key.source ?? "");
      const value = this.read(pair.value, childPath(path, name), key);
      if (name === "<<" && pair.key.type === "PLAIN") merged.push(...this.#mergeSources(value));
      else this.#put(entries, name, { key, value }, { path, missing: pair.value === null });
    }
    // Own keys override merged ones, and earlier merge sources override later ones.
    for (const source of merged)
      if (source.kind === "map")
        for (const [name, entry] of source.entries) if (!entries.has(name)) entries.set(name, entry);
    return entries;
  }

  #put(
    entries: Map<string, MapEntry>,
    name: string,
    entry: MapEntry,
    { path, missing }: { path: string; missing: boolean },
  ) {
    const place = { at: entry.key, path: childPath(path, name) };
    const before = entries.get(name);
    if (before) this.#issues.error(place, `stands here twice, first in line ${before.key.line}`);
    else if (name === "__proto__" || name === "") this.#issues.error(place, "invalid key");
    else {
      const unspaced = missing && name.includes(":");
      if (unspaced)
        this.#issues.error(
          place,
          "has no value",
          `write a space after the colon: ${shownKey(name).replace(":", ": ")}`,
        );
      entries.set(name, unspaced ? { ...entry, value: broken(entry.value) } : entry);
    }
  }

  #mergeSources(node: ConfigNode): readonly ConfigNode[] {
    const sources = node.kind === "list" ? node.items : [node];
    for (const source of sources)
      if (source.kind === "scalar" && !source.broken)
        this.#issues.error(source, "<< takes a map, or a list of maps, by alias");
    return sources;
  }
}

/** Why a value seems empty: YAML takes `&` as an anchor and `#` as a comment. */
function emptyNote(node: unknown, file: string, original: (offset: number) => number): string | undefined {
  if (!isScalar(node)) return undefined;
  if (node.anchor !== undefined) return "a text that begins with & must stand in quotes";
  const [line = ""] = file.slice(original(node.range?.[0] ?? 0)).split("\n", 1);
  return /^\s*#/.test(line) ? "a text that begins with # must stand in quotes, # begins a comment" : undefined;
}

/** Replaces a node with a reported error. */
function broken({ at, path }: Pick<ConfigNode, "at" | "path">): ConfigNode {
  return { kind: "scalar", at, path, value: null, text: "", broken: true };
}
