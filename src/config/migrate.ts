// Brings a file of an older format to the present one. What need not change stays as it is written, to the byte: a
// migration says which places of the text change, and comments and layout around them are nobody's business.
import { isMap, isScalar, parseDocument, type YAMLMap } from "yaml";

/** `text` in place of what stands from offset `from` to `to`. */
export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** From one format to the next. */
export interface Migration {
  /** Undefined: files that name no version. */
  readonly from: number | undefined;
  readonly to: number;
  /** What it does, for people: `sources.*.interval is called every`. */
  readonly does: string;
  /** Edits that do not overlap, in any order. That of `version` itself is not among them. */
  edits(root: YAMLMap, text: string): readonly Edit[];
}

export const currentVersion = 1;

/** One line for each format that there was. Version 1 is the first that names itself. */
export const migrations: readonly Migration[] = [
  { from: undefined, to: 1, does: "the file names the version of its format", edits: () => [] },
];

export type Migrated =
  | { readonly kind: "current" }
  | {
      readonly kind: "migrated";
      readonly from: number | undefined;
      readonly text: string;
      readonly did: readonly string[];
    }
  /** Written by a newer program, or of a version that there never was. */
  | { readonly kind: "unknown"; readonly version: string }
  | { readonly kind: "unreadable" };

/** Goes from format to format until the present one. */
export function migrate(text: string, table = migrations, current = currentVersion): Migrated {
  const first = versionOf(text);
  if (first === undefined) return { kind: "unreadable" };
  if (first.version === current) return { kind: "current" };
  const did: string[] = [];
  let now = text;
  for (;;) {
    const at = versionOf(now);
    if (at === undefined) return { kind: "unreadable" };
    const { root, version } = at;
    if (version === current)
      return { kind: "migrated", from: typeof first.version === "number" ? first.version : undefined, text: now, did };
    const next = table.find(({ from }) => from === version);
    if (!next) return { kind: "unknown", version: String(version) };
    now = edited(now, [...next.edits(root, now), named(root, next.to, now)]);
    did.push(next.does);
  }
}

interface Versioned {
  readonly root: YAMLMap;
  /** Undefined: it names none. A text: it is no number. */
  readonly version: number | string | undefined;
}

function versionOf(text: string): Versioned | undefined {
  const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false });
  const root = document.contents;
  if (document.errors.length > 0 || !isMap(root)) return undefined;
  const version: unknown = root.get("version");
  if (version === undefined || typeof version === "number") return { root, version };
  return { root, version: JSON.stringify(version) };
}

/** The edit that writes the version: in its place, or before everything else. */
function named(root: YAMLMap, version: number, text: string): Edit {
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === "version");
  const range = isScalar(pair?.value) ? pair.value.range : undefined;
  if (range) return { from: range[0], to: range[1], text: String(version) };
  const first = root.items[0]?.key;
  const at = (isScalar(first) ? first.range?.[0] : undefined) ?? text.length;
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  return { from: at, to: at, text: root.flow === true ? `version: ${version}, ` : `version: ${version}${end}` };
}

function edited(text: string, edits: readonly Edit[]): string {
  let result = text;
  // From the end, so that the offsets of the others hold.
  for (const { from, to, text: put } of edits.toSorted((a, b) => b.from - a.from))
    result = result.slice(0, from) + put + result.slice(to);
  return result;
}
