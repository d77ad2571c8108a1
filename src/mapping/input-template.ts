// Templates: `hall.{room}.temp` and captures → `hall.kitchen.temp`. Also merges signal metadata, and determines which
// Input IDs a configuration can produce.
import { createHash } from "node:crypto";
import { type InputId, isInputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Captures } from "../core/source.ts";
import { longestTexts } from "../wire/signal-view.ts";
import type { TagRule } from "./options.ts";

const placeholder = /\{([A-Za-z_][\w-]*)\}/g;

/** Distinct names in braces, in order of appearance. */
export function placeholders(text: string): readonly string[] {
  return [...new Set([...text.matchAll(placeholder)].map((match) => match[1] ?? ""))];
}

/** The capture of `name`, or an empty text. */
export function captured(captures: Captures, name: string): string {
  return Object.hasOwn(captures, name) ? (captures[name] ?? "") : "";
}

/** The fixed parts of a template, which are checked when the configuration is read. */
export function literals(text: string): readonly string[] {
  return text.split(placeholder).filter((_, index) => index % 2 === 0);
}

/** Characters that separate the parts of an Input ID. An empty capture removes one of them. */
const separators = ".-_:#+/";

function isSeparator(text: string): boolean {
  return text !== "" && separators.includes(text);
}

/**
 * Fills the template of an Input ID with sanitised captures. An empty capture removes the separator before it, or the
 * one after it at the beginning. The result may be empty, or invalid if the template is.
 */
export function fillInput(template: string, captures: Captures): string {
  const parts = template.split(placeholder);
  let id = "";
  let eatNext = false;
  parts.forEach((part, index) => {
    if (index % 2 === 0) {
      id += eatNext && isSeparator(part.charAt(0)) ? part.slice(1) : part;
      eatNext = false;
      return;
    }
    const text = sanitise(captured(captures, part));
    if (text !== "") id += text;
    else if (id === "") eatNext = true;
    else if (isSeparator(id.slice(-1))) id = id.slice(0, -1);
  });
  return shorten(id);
}

/** Letters and signs without a Unicode decomposition to ASCII. */
const transliterated: Readonly<Record<string, string>> = {
  ß: "ss",
  ẞ: "SS",
  æ: "ae",
  Æ: "AE",
  œ: "oe",
  Œ: "OE",
  ø: "o",
  Ø: "O",
  đ: "d",
  Đ: "D",
  ð: "d",
  Ð: "D",
  þ: "th",
  Þ: "Th",
  ł: "l",
  Ł: "L",
  ı: "i",
  µ: "u",
  μ: "u",
  "°": "deg",
  "%": "pct",
  "‰": "permille",
  Ω: "Ohm",
  "×": "x",
  "–": "-",
  "—": "-",
};
const known = new RegExp(`[${Object.keys(transliterated).join("")}]`, "g");

/** Letters that no Latin ones stand for. Names in such a script would otherwise all become empty, and so the same. */
const otherScripts = /(?:(?!\p{Script=Latin})\p{L}\p{M}*)+/gu;

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Converts a text to valid Input ID characters. Deterministic, but different texts may become equal. */
export function sanitise(text: string): string {
  if (/^[a-zA-Z0-9\-_:.#+/]*$/.test(text)) return text;
  return text
    .replace(known, (letter) => transliterated[letter] ?? "_")
    .replace(otherScripts, (letters) => {
      // Signs such as Ω (U+2126) or ℓ are other forms of letters that have a text.
      const plain = letters.normalize("NFKC").replace(known, "");
      return plain.search(otherScripts) < 0 ? letters : hashOf(letters.normalize("NFC"));
    })
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(known, (letter) => transliterated[letter] ?? "_")
    .replace(/[^a-zA-Z0-9\-_:.#+/]+/g, "_")
    .replace(/_{2,}/g, "_")
    .replace(/^_|_$/g, "");
}

const maxLength = 128;

/** Keeps the end, where names differ most, and puts a hash of the whole before it. */
function shorten(id: string): string {
  if (id.length <= maxLength) return id;
  return `${hashOf(id)}_${id.slice(id.length - (maxLength - 9))}`;
}

/**
 * Metadata of the configuration with placeholders filled; it overrides that of the device. Captured texts and those of
 * devices may be of any length: what the service does not accept is cut, and empty names are omitted.
 */
export function signalOf(
  rule: TagRule["signal"],
  device: PartialSignalMetadata,
  captures: Captures,
): PartialSignalMetadata {
  const signal: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(device)) if (value !== undefined) signal[key] = value;
  for (const [key, value] of Object.entries(rule)) if (value !== undefined) signal[key] = filled(value, captures);
  for (const [key, longest] of Object.entries(longestTexts)) {
    const text = fitting(signal[key], longest);
    if (text !== undefined && (text !== "" || key !== "name")) signal[key] = text;
    else delete signal[key];
  }
  return signal;
}

/** A text of at most `longest` characters. An object with such texts, without the empty ones. */
function fitting(value: unknown, longest: number): unknown {
  if (typeof value === "string")
    return value.length > longest ? `${value.slice(0, longest - 1).replace(/[\ud800-\udbff]$/, "")}…` : value;
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, text]) => [key, fitting(text, longest)] as const);
  return Object.fromEntries(members.filter(([, text]) => text !== ""));
}

function filled(value: unknown, captures: Captures): unknown {
  if (typeof value === "string") return value.replace(placeholder, (_, name: string) => captured(captures, name));
  if (Array.isArray(value)) return value.map((item) => filled(item, captures));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, captures)]));
}

export interface ConfiguredInputs {
  /** Input IDs without placeholders, with the signal metadata of the configuration. */
  readonly fixed: ReadonlyMap<InputId, PartialSignalMetadata>;
  /** Whether `input` is fixed or could result from a template. May return false positives. */
  has(input: string): boolean;
}

/** `rules`: those of all tags of all sources. */
export function configuredInputs(rules: Iterable<TagRule>): ConfiguredInputs {
  const fixed = new Map<InputId, PartialSignalMetadata>();
  const templates = new Map<string, readonly string[]>();
  /** Rules share metadata objects, so the up to 100,000 inputs share the results. */
  const signals = new Map<TagRule["signal"], PartialSignalMetadata>();
  const sharedOf = (signal: TagRule["signal"]) => {
    const known = signals.get(signal) ?? signalOf(signal, {}, {});
    signals.set(signal, known);
    return known;
  };
  for (const { input, signal } of rules) {
    if (placeholders(input).length > 0) templates.set(input, fixedParts(input));
    else if (isInputId(input)) fixed.set(input, sharedOf(signal));
  }
  const parts = [...templates.values()];
  return {
    fixed,
    has(input) {
      if (isInputId(input) && fixed.has(input)) return true;
      // An ID shortened to a hash and a tail does not show its template.
      if (parts.length > 0 && input.length === 128 && /^[0-9a-f]{8}_/.test(input)) return true;
      return parts.some((texts) => stands(texts, input));
    },
  };
}

/** The literals of a template, without separators that empty captures may remove. */
function fixedParts(template: string): readonly string[] {
  const texts = literals(template);
  const parts: string[] = [];
  for (const [index, whole] of texts.entries()) {
    const begins = index > 0 && parts.every((part) => part === "") && isSeparator(whole.charAt(0));
    let text = begins ? whole.slice(1) : whole;
    while (index < texts.length - 1 && isSeparator(text.slice(-1))) text = text.slice(0, -1);
    parts.push(text);
  }
  return parts;
}

/** Whether `input` starts with the first text, ends with the last, and contains the others in order in between. */
function stands(texts: readonly string[], input: string): boolean {
  const [first = "", ...others] = texts;
  const last = others.pop() ?? "";
  if (!input.startsWith(first) || !input.endsWith(last)) return false;
  let at = first.length;
  const end = input.length - last.length;
  for (const text of others) {
    const found = input.indexOf(text, at);
    if (found < 0) return false;
    at = found + text.length;
  }
  return at <= end;
}
