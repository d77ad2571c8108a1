// The configuration in effect for its page: each value with the place where it is written, and the lines around a place.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ShownConfig } from "../config/format/config.ts";
import { shownLines } from "../config/nodes/excerpt.ts";
import { placeholders } from "../mapping/input-template.ts";

interface Row {
  readonly path: string;
  readonly value: string;
  /** Undefined: it is the default. */
  readonly at?: { readonly file: string; readonly line: number } | undefined;
  /** The page of a tag, if it has one. */
  readonly tag?: { readonly source: string; readonly tag: number; readonly input: string };
}

const mostRows = 200;
const linesBefore = 12;
const linesShown = 41;

/** Rows of the values, then of the tags, that contain the search, from index `first` on. */
export function viewConfig({ file, values = [], sources }: ShownConfig, query: URLSearchParams) {
  const search = (query.get("search") ?? "").toLowerCase();
  const isWritten = query.get("only") === "written";
  const wanted = Math.max(0, Math.floor(Number(query.get("first")) || 0));
  const own = [...values, ...sources.flatMap((source) => source.values ?? [])];
  let total = 0;
  let matching = 0;
  const rows: Row[] = [];
  const offer = (text: string, isDefault: boolean, make: () => Row) => {
    total++;
    if ((isWritten && isDefault) || !text.toLowerCase().includes(search)) return;
    if (matching++ >= wanted && rows.length < mostRows) rows.push(make());
  };
  for (const { path, value, at } of own) offer(`${path} ${value}`, !at, () => ({ path, value, at }));
  // A source may have 100,000 tags, so rows are made only for those that are shown.
  for (const { name: source, rules, places } of sources)
    for (const [tag, { input }] of rules.entries()) {
      const path = `sources.${source}.tags[${tag}]`;
      offer(`${path} ${input}`, false, () => ({
        path,
        value: input,
        at: places?.at(tag),
        ...(placeholders(input).length === 0 && { tag: { source, tag, input } }),
      }));
    }
  return { file, total, matching, first: wanted, most: mostRows, rows };
}

/** Whether the files differ from what was loaded. Unreadable ones differ. */
export async function hasChanged({ files = [], checksum = "" }: ShownConfig): Promise<boolean> {
  const hash = createHash("sha256");
  try {
    for (const file of files) hash.update(await readFile(file));
  } catch {
    return true;
  }
  return !hash.digest("hex").startsWith(checksum);
}

/** The lines around a place, without secrets and comments. `ok: false`: it is no file of the configuration. */
export async function viewLines({ files = [] }: ShownConfig, query: URLSearchParams) {
  const file = query.get("file") ?? "";
  if (!files.includes(file)) return { ok: false, reason: "this file is not part of the configuration" };
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return { ok: false, reason: "the file cannot be read" };
  const line = Math.max(1, Math.floor(Number(query.get("line")) || 1));
  const first = Math.max(1, line - linesBefore);
  return { ok: true, file, line, first, lines: shownLines(text, first, linesShown) };
}
