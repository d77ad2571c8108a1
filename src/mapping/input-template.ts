// `hall.{room}.temp` and what the topic captured → `hall.kitchen.temp`. Pure.
import { createHash } from "node:crypto";
import type { Captures } from "../core/source.ts";

const placeholder = /\{([A-Za-z_][\w-]*)\}/g;

/** Names in braces, each once, in their order. */
export function placeholders(text: string): readonly string[] {
  return [...new Set([...text.matchAll(placeholder)].map((match) => match[1] ?? ""))];
}

/** The text with every name in braces replaced; a name without a value gives nothing. */
export function fillText(text: string, captures: Captures): string {
  return text.replace(placeholder, (_, name: string) => (Object.hasOwn(captures, name) ? (captures[name] ?? "") : ""));
}

/** What stands between the names in braces, checked when the configuration is read. */
export function literals(text: string): readonly string[] {
  return text.split(placeholder).filter((_, index) => index % 2 === 0);
}

/** Characters that separate the parts of an Input ID; one goes where a capture is empty. */
export const separators = ".-_:#+/";

/**
 * Fills a template of an Input ID. Captures are made to fit it (see `sanitise`); an empty one takes the separator
 * before it along, at the beginning the one after it. May still be empty or hold what the template itself had wrong.
 */
export function fillInput(template: string, captures: Captures): string {
  const parts = template.split(placeholder);
  let id = "";
  let eatNext = false;
  parts.forEach((part, index) => {
    if (index % 2 === 0) {
      id += eatNext && separators.includes(part.charAt(0)) ? part.slice(1) : part;
      eatNext = false;
      return;
    }
    const text = sanitise(Object.hasOwn(captures, part) ? (captures[part] ?? "") : "");
    if (text !== "") id += text;
    else if (id === "") eatNext = true;
    else if (separators.includes(id.charAt(id.length - 1))) id = id.slice(0, -1);
  });
  return shorten(id);
}

/** Letters and signs that no decomposition leads to ASCII. */
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

/**
 * Makes a captured text fit an Input ID: accents go, known letters and signs are spelled out, any other run of
 * characters that may not stand there becomes one `_`. The same text always gives the same; different ones may meet.
 */
export function sanitise(text: string): string {
  if (/^[a-zA-Z0-9\-_:.#+/]*$/.test(text)) return text;
  return text
    .replace(known, (letter) => transliterated[letter] ?? "_")
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(known, (letter) => transliterated[letter] ?? "_")
    .replace(/[^a-zA-Z0-9\-_:.#+/]+/g, "_")
    .replace(/_{2,}/g, "_")
    .replace(/^_|_$/g, "");
}

const maxLength = 128;

/** Keeps the tail, where names differ most, behind a hash of the whole. */
function shorten(id: string): string {
  if (id.length <= maxLength) return id;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 8);
  return `${hash}_${id.slice(id.length - (maxLength - 9))}`;
}
