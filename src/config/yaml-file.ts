// YAML in, nodes with positions out. The one place that knows the YAML library.
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { Issues } from "./issue.ts";
import { type ConfigNode, childPath, countNodes, type ListNode, type MapEntry, type Position } from "./node.ts";
import { resolveScalar } from "./scalar.ts";
import { explain } from "./yaml-hints.ts";

/** More than any plant has tags times fields; a few aliases of aliases would otherwise fill the memory. */
const maxNodes = 2_000_000;

/**
 * The nodes of `text`, or undefined when it is no YAML or empty; then `issues` says why. `origin` stands for every
 * position where the text is a part of something else.
 */
export function parseYaml(text: string, file: string, issues: Issues, origin?: Position): ConfigNode | undefined {
  const lines = new LineCounter();
  // The failsafe schema leaves every scalar a text: what it means is `resolveScalar`'s, for references as well.
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: "failsafe",
    uniqueKeys: false,
    prettyErrors: false,
  });
  const position = (offset: number): Position => {
    if (origin) return origin;
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0) {
    const seen = new Set<number>();
    for (const [index, { code, message, pos }] of wrong.entries()) {
      const at = position(pos[0]);
      const {
        message: shown,
        hint,
        certain,
      } = explain(code, message, text.split(/\r?\n/)[at.line - 1] ?? "", at.column);
      // One slip makes the parser stumble over much that follows: only what is wrong by itself is told as well.
      if (seen.has(at.line) || seen.size >= 20 || (index > 0 && !certain)) continue;
      seen.add(at.line);
      issues.error({ at, path: "" }, shown, hint);
    }
    return undefined;
  }
  if (document.contents === null || (isScalar(document.contents) && document.contents.source === "")) {
    issues.error({ at: { file, line: 1, column: 1 }, path: "" }, "is empty");
    return undefined;
  }
  return new Reader(text, position, issues).read(document.contents, "", { file, line: 1, column: 1 });
}

/** Turns the library's nodes into ours. Aliases share the node of their anchor. */
class Reader {
  readonly #text: string;
  readonly #position: (offset: number) => Position;
  readonly #issues: Issues;
  readonly #anchors = new Map<string, { readonly node: ConfigNode; readonly size: number; used: boolean }>();
  #nodes = 0;

  constructor(text: string, position: (offset: number) => Position, issues: Issues) {
    this.#text = text;
    this.#position = position;
    this.#issues = issues;
  }

  /** `fallback`: the position of what is not written at all. */
  read(node: unknown, path: string, fallback: Position): ConfigNode {
    this.#nodes++;
    if (isAlias(node)) return this.#alias(node.source, path, this.#at(node, fallback));
    const at = this.#at(node, fallback);
    const read = this.#plain(node, path, at);
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      const { anchor } = node;
      if (anchor !== undefined) this.#anchors.set(anchor, { node: read, size: countNodes(read), used: false });
    }
    return read;
  }

  #at(node: unknown, fallback: Position): Position {
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    return range ? this.#position(range[0]) : fallback;
  }

  #plain(node: unknown, path: string, at: Position): ConfigNode {
    if (isMap(node)) return { kind: "map", at, path, entries: this.#entries(node.items, path, at) };
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.read(item, childPath(path, index), at));
      return { kind: "list", at, path, items };
    }
    const text = isScalar(node) ? String(node.source ?? "") : "";
    const quoted = isScalar(node) && (node.type !== "PLAIN" || node.tag === "tag:yaml.org,2002:str");
    const value = quoted ? text : resolveScalar(text);
    const note = text === "" && !quoted ? emptyNote(node, this.#text) : undefined;
    return { kind: "scalar", at, path, value, text, ...(note !== undefined && { note }) };
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
          "has a key that is no text",
          "a text with braces or brackets needs quotes",
        );
        continue;
      }
      const name = String(pair.key.source ?? "");
      const value = this.read(pair.value, childPath(path, name), key);
      if (name === "<<" && pair.key.type === "PLAIN") merged.push(...this.#mergeSources(value));
      else this.#put(entries, name, { key, value }, { path, missing: pair.value === null });
    }
    // What is written here goes before what is merged, the first merged before the next.
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
    else if (name === "__proto__" || name === "") this.#issues.error(place, "is no key");
    else {
      const unspaced = missing && name.includes(":");
      if (unspaced)
        this.#issues.error(place, "has no value", `write a space after the colon: ${name.replace(":", ": ")}`);
      entries.set(name, unspaced ? { ...entry, value: broken(entry.value) } : entry);
    }
  }

  #mergeSources(node: ConfigNode): readonly ConfigNode[] {
    const sources = node.kind === "list" ? (node satisfies ListNode).items : [node];
    for (const source of sources)
      if (source.kind === "scalar" && !source.broken)
        this.#issues.error(source, "<< takes a map, or a list of maps, by alias");
    return sources;
  }
}

/** Why nothing stands where something does: `&` and `#` begin what YAML does not count as text. */
function emptyNote(node: unknown, file: string): string | undefined {
  if (!isScalar(node)) return undefined;
  if (node.anchor !== undefined) return "a text that begins with & must stand in quotes";
  const [line = ""] = file.slice(node.range?.[0]).split("\n", 1);
  return /^\s*#/.test(line) ? "a text that begins with # must stand in quotes, # begins a comment" : undefined;
}

/** Stands where something was complained about. */
function broken({ at, path }: Pick<ConfigNode, "at" | "path">): ConfigNode {
  return { kind: "scalar", at, path, value: null, text: "", broken: true };
}
