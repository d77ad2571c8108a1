// Shows the line of an error with a caret, without secrets. The file may not be valid YAML, so everything after the key
// of a secret is hidden. Exceptions are a clear reference, and text beyond a clear end of the value.

import type { z } from "zod";
import { namesSecret, withoutSecrets } from "../../lib/text/without-secrets.ts";
import { isSecret } from "./schema-walk.ts";
import { nearest } from "./suggest.ts";

/** Longer lines are cut around the caret. */
const longest = 100;
const key = /(["']?)([A-Za-z_][\w.-]*)\1\s*:(?=\s|$)\s*/g;
/** A key without a space after its colon, as in JSON or by mistake. */
const tightKey = /(?<=^|[\s,[]|(?<!\$)\{)(["']?)([A-Za-z_][\w.-]*)\1\s*:(?=\S)(?!\/\/)/g;
/** A key without a colon, or with another sign in its place. */
const word = /(?<![\w.-])(["']?)([A-Za-z_][\w-]*)\1\s*[\s=](?:[\s=]|->?>?)*(?=\S)/g;
/** A value that consists of a reference only. */
const reference = /^(["']?)\$\{(?:(?:file|credential):[^}:]*|[A-Za-z_]\w*)\}\1(?=\s*(?:[,}\]#]|$))/;
const quoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?=\s*(?:[,}\]#]|$))/;
const hidden = "***";

/** Two lines of text. `line` and `column` count from 1. Undefined: the line does not exist or is empty. */
export function excerpt(lines: readonly string[], line: number, column: number): string | undefined {
  const text = lines[line - 1];
  if (text === undefined || text.trim() === "") return undefined;
  const at = Math.min(column - 1, text.length);
  const { shown, caret } = masked(text, at, secretRanges(lines, line - 1));
  const from = shown.length <= longest ? 0 : Math.max(0, Math.min(caret - longest / 2, shown.length - longest));
  const part = `${from > 0 ? "…" : ""}${shown.slice(from, from + longest)}${from + longest < shown.length ? "…" : ""}`;
  const number = String(line).padStart(6);
  const gap = " ".repeat(caret - from + (from > 0 ? 1 : 0));
  return `${number} | ${part.replace(/\p{Cc}|\p{Cf}/gu, " ").trimEnd()}\n${" ".repeat(number.length)} | ${gap}^`;
}

/** Lines of a file from `first` on, at most `count`, without secrets and comments. `first` counts from 1. */
export function shownLines(text: string, first = 1, count = Number.POSITIVE_INFINITY): readonly string[] {
  const lines = text.split(/\r?\n/);
  return lines
    .slice(first - 1, first - 1 + count)
    .map((line, index) => masked(line, 0, secretRanges(lines, first - 1 + index)).shown);
}

/** A line of a file without what may be secret. `index` counts from 0. */
export function shownLine(lines: readonly string[], index: number): string {
  return masked(lines[index] ?? "", 0, secretRanges(lines, index)).shown;
}

type Range = readonly [from: number, to: number];

function masked(
  text: string,
  at: number,
  ranges: readonly Range[],
): { readonly shown: string; readonly caret: number } {
  let shown = "";
  let caret: number | undefined;
  let done = 0;
  for (const [from, to] of ranges) {
    if (at < from) caret ??= shown.length + at - done;
    shown += text.slice(done, from);
    if (at < to) caret ??= shown.length;
    shown += hidden;
    done = to;
  }
  caret ??= shown.length + at - done;
  return { shown: shown + text.slice(done), caret };
}

/** The parts of a line that may be secret, in order. */
function secretRanges(lines: readonly string[], index: number): readonly Range[] {
  const text = lines[index] ?? "";
  const below = surroundingsOf(lines).below[index] ?? 0;
  if ((below & secretBit) !== 0 || goesOn(lines, index)) return [[indentOf(text), text.length]];
  const ranges: Range[] = [];
  let within = (below & credentialsBit) !== 0;
  for (const match of keysOf(text)) {
    const name = match[2] ?? "";
    const from = match.index + match[0].length;
    if (from <= (ranges.at(-1)?.[1] ?? 0)) continue;
    const value = text.slice(from);
    const group = holdsCredentials(name);
    if (group) within = true;
    if (group && (value === "" || value.startsWith("{"))) continue;
    if (!group && !isSecretKey(name) && !(within && !isHarmless(name))) continue;
    if (value === "" || reference.test(value)) continue;
    ranges.push([from, from + (quoted.exec(value)?.[0].length ?? value.length)]);
  }
  return merged([...ranges, ...users(lines, index), ...words(text), ...parameters(text), ...comment(text)]);
}

function keysOf(text: string): readonly RegExpExecArray[] {
  return [...text.matchAll(key), ...text.matchAll(tightKey)].toSorted((a, b) => a.index - b.index);
}

/** What surrounds each line, found in one pass: a file may have as many errors as lines. */
interface Surroundings {
  /** The next line above that is not blank; -1: none. */
  readonly above: Int32Array;
  /** Whether the line is below a secret, or below credentials, by indentation. */
  readonly below: Uint8Array;
  /** 1: an @ follows below, before the next line with a key. */
  readonly at: Uint8Array;
}

const secretBit = 1;
const credentialsBit = 2;
const surroundings = new WeakMap<readonly string[], Surroundings>();

function surroundingsOf(lines: readonly string[]): Surroundings {
  const known = surroundings.get(lines);
  if (known) return known;
  const above = new Int32Array(lines.length).fill(-1);
  const parent = new Int32Array(lines.length).fill(-1);
  const below = new Uint8Array(lines.length);
  const at = new Uint8Array(lines.length);
  /** What lines that have others below them are: 100,000 tags are below one line. */
  const kinds = new Map<number, number>();
  for (const [i, line] of lines.entries()) {
    const before = i - 1;
    above[i] = lines[before]?.trim() === "" ? (above[before] ?? -1) : before;
    let up = above[i] ?? -1;
    while (up >= 0 && indentOf(lines[up] ?? "") >= indentOf(line)) up = parent[up] ?? -1;
    parent[i] = up;
    const kind = kinds.get(up) ?? kindOf(lines[up] ?? "");
    kinds.set(up, kind);
    below[i] = kind | (below[up] ?? 0);
  }
  for (let i = lines.length - 2; i >= 0; i--) {
    const next = lines[i + 1] ?? "";
    if (next.search(key) < 0 && (next.includes("@") || at[i + 1] === 1)) at[i] = 1;
  }
  const found = { above, below, at };
  surroundings.set(lines, found);
  return found;
}

/** Whether a secret that begins in the line above may continue in this one, regardless of indentation. */
function goesOn(lines: readonly string[], index: number): boolean {
  const above = lines[surroundingsOf(lines).above[index] ?? -1] ?? "";
  const last = keysOf(above).at(-1);
  const [name, value] = [last?.[2] ?? "", above.slice((last?.index ?? 0) + (last?.[0].length ?? 0))];
  if (holdsCredentials(name)) return /^[{[]?$/.test(value) && keysOf(lines[index] ?? "").length === 0;
  return isSecretKey(name) && (value === "" || (/^["']/.test(value) && !quoted.test(value)));
}

/** A key at the end of a line, with or without its colon, and the signs behind it: `password |`, `{ auth: >-`. */
const keyAtEnd = /(?:^|[-{[,])\s*["']?([A-Za-z_][\w-]*)["']?\s*((?:[=:|>-]\s*)*)$/;
/** Longer keys are none. Bounds the search. */
const longestKey = 200;

/** The bits of what is indented below a line. The last key of the line is the one that continues there. */
function kindOf(line: string): number {
  const last = [...line.matchAll(key)].at(-1)?.[2] ?? "";
  const [, word = "", signs = ""] = keyAtEnd.exec(line.slice(-longestKey)) ?? [];
  const isSecret = isSecretKey(last) || isSecretKey(word) || (holdsCredentials(word) && /[|>]/.test(signs));
  return (isSecret ? secretBit : 0) | (holdsCredentials(last) ? credentialsBit : 0);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Credentials in addresses: up to the last @ of the line, or the whole line if an @ follows below. */
function users(lines: readonly string[], index: number): readonly Range[] {
  const text = lines[index] ?? "";
  const to = surroundingsOf(lines).at[index] === 1 ? text.length : text.lastIndexOf("@");
  if (to <= 0) return [];
  const before = [...text.matchAll(key)].findLast(
    ({ index: at }) => at < to && /^\s*$|[-{[,]\s*$/.test(text.slice(0, at)),
  );
  const start = before ? before.index + before[0].length : text.length - text.trimStart().length;
  const [opening = ""] = /^(?:[-[{"'\s]|[a-z][a-z0-9+.-]*:\/\/)*/i.exec(text.slice(start, to)) ?? [];
  return start + opening.length < to ? [[start + opening.length, to]] : [];
}

/** `password rope`: a key without its colon. */
function words(text: string): readonly Range[] {
  const match = [...text.matchAll(word)].find(([, , name = ""]) => isSecretKey(name));
  return match ? [[match.index + match[0].length, text.length]] : [];
}

/** Query parameters such as `?token=rope`. */
function parameters(text: string): readonly Range[] {
  return [...text.matchAll(/[?&;#]([^\s=&;?#]+)=([^\s&;#"']+)/g)].flatMap(
    ({ index, 0: whole, 1: name = "", 2: value = "" }) =>
      namesSecret(name) ? [[index + whole.length - value.length, index + whole.length] as const] : [],
  );
}

/** Comments, since they may contain passwords. */
function comment(text: string): readonly Range[] {
  const match = /(?:^|\s)#\s*(?=\S)/.exec(text);
  return match ? [[match.index + match[0].length, text.length]] : [];
}

function merged(ranges: readonly Range[]): readonly Range[] {
  const all: Range[] = [];
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = all.at(-1);
    if (last && from <= last[1]) all[all.length - 1] = [last[0], Math.max(last[1], to)];
    else all.push([from, to]);
  }
  return all;
}

/** A key for the location of a secret. */
const place = /(?:file|env|url)$/i;
/** Any value below these keys may be secret, except those of `harmless`. */
const credentials = /^(?:auth|basic|clientCredentials|credentials?|headers|userCertificate)$/i;
const harmless = /^(?:basic|clientCredentials|username|clientId|apiUrl)$/;

/** Keys whose misspellings hide their value, too. */
const secretKeys = ["password", "token", "readToken", "clientSecret", "keyPassphrase"];

export function isSecretKey(name: string): boolean {
  if (place.test(name) || credentials.test(name)) return false;
  return namesSecret(name) || nearest(name, secretKeys) !== undefined;
}

/** Whether any value below this key may be secret. */
function holdsCredentials(name: string): boolean {
  return credentials.test(name);
}

/** Whether the value of this key is not secret, even below a key that `holdsCredentials`. */
function isHarmless(name: string): boolean {
  return harmless.test(name) || place.test(name);
}

/** Whether the value at `path` must be hidden. Without `schemas` of this place, the names in the path decide. */
export function isHidden(path: string, schemas: readonly z.core.$ZodType[]): boolean {
  const names = path.split(/[.[\]]+/).filter((name) => name !== "" && !/^\d+$/.test(name));
  const last = names.at(-1) ?? "";
  if (schemas.length > 0) return schemas.some(isSecret) || holdsCredentials(last);
  return names.some(isSecretKey) || holdsCredentials(last) || (names.some(holdsCredentials) && !isHarmless(last));
}

/** The key without secrets. `password:rope`, without the space, is parsed as a key that contains its value. */
export function shownKey(key: string): string {
  const [whole, name = ""] = /^([A-Za-z_][\w-]*)(?:["']?\s*[:=]\s*|\s+)\S/.exec(key) ?? [];
  return whole !== undefined && isSecretKey(name) ? `${name}:***` : withoutSecrets(key);
}
