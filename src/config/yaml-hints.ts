// Errors of the YAML parser, explained for readers who do not know YAML's grammar.
import { isSecretKey } from "./excerpt.ts";

interface Explanation {
  readonly message: string;
  readonly hint?: string;
  /** It is wrong whatever stands before it. */
  readonly certain?: true;
}

/** `line` is the line complained about, `column` (from 1) where. */
export function explain(code: string, message: string, line: string, column: number): Explanation {
  const quotes = needsQuotes(line, column);
  if (quotes !== undefined)
    return { message: "is not YAML here", hint: `put the text in quotes: ${quotes}`, certain: true };
  // Behind a colon the parser quotes what stands there, which may be a secret.
  const [first = ""] = message.split(/\n|: /);
  const plain = `is not YAML here: ${first.charAt(0).toLowerCase()}${first.slice(1)}`;
  if (code === "BAD_SCALAR_START")
    return {
      message: `${notHere} a text must not begin with ${line.charAt(column - 1)}`,
      hint: "put the text in quotes",
    };
  if (code === "MISSING_CHAR" && /quote/.test(first)) return { message: plain, hint: "close the quotes" };
  return { message: plain, ...explanations[code] };
}

const notHere = "is not YAML here:";

/** By code of the parser; without a message that of the parser stands. */
const explanations: Readonly<Record<string, Partial<Explanation>>> = {
  TAB_AS_INDENT: { message: "is indented with a tab", hint: "YAML takes spaces only" },
  BLOCK_AS_IMPLICIT_KEY: {
    message: `${notHere} a second key in one line`,
    hint: 'either the indentation is invalid, or a text with ": " in it needs quotes',
  },
  MULTILINE_IMPLICIT_KEY: {
    message: `${notHere} a line without a colon`,
    hint: "write `key: value`; a text that goes on in the next line must be indented",
  },
  BAD_INDENT: { hint: "a bracket, brace or quote is not closed, or the indentation is invalid" },
  MISSING_CHAR: { hint: "write `key: value`, with a space after the colon" },
  TAG_RESOLVE_FAILED: {
    message: "begins with !, which marks a tag of YAML that means nothing here",
    certain: true,
    hint: "a text that begins with ! must stand in quotes; secrets are given as ${NAME} or ${file:/path}",
  },
  MULTIPLE_DOCS: { message: "begins a second document", hint: "a configuration is one document; take the --- out" },
  BAD_DQ_ESCAPE: { hint: "in double quotes a backslash is written \\\\; in single quotes it is one" },
  RESOURCE_EXHAUSTION: { message: "is nested too deeply" },
};

/** Texts that people forget to quote: JSON paths and references in braces, and whatever begins with a brace. */
const unquoted = [
  /([\w.-]+:\s+)(\$(?:[.[])(?:\['[^']*'\]|[^,\s}])*)/g,
  /([\w.-]+:\s+)([^\s"',{}[\]]*\$\{[^}]*\}[^\s"',}]*)/g,
  /([\w.-]+:\s+)([^\s"',{}[\]]*\{[\w.-]+\}[^\s"',}]*(?:\{[\w.-]+\}[^\s"',}]*)*)/g,
];

/** `value: "$.a[0]"` for the text before `column` that needs its quotes. */
function needsQuotes(line: string, column: number): string | undefined {
  let best: RegExpMatchArray | undefined;
  for (const pattern of unquoted)
    for (const match of line.matchAll(pattern))
      if (stumbles(line.slice(0, match.index), match[2] ?? "") && (best === undefined || match.index <= column))
        best = match;
  if (!best) return undefined;
  const [, key = "", value = ""] = best;
  // What may be a secret is not repeated; a reference is none.
  const shown = isSecretKey(key.replace(/:\s+$/, "")) && !/^\$\{[^}]*\}$/.test(value) ? "..." : value;
  return `${key}"${shown}"`;
}

/** Inside braces any bracket ends a text; elsewhere only one at its beginning is a problem. */
function stumbles(before: string, text: string): boolean {
  return /[[{]/.test(text) && (/[[{]/.test(before) || /^[[{]/.test(text));
}

/** What may stand before a value: a quote further on in a text without quotes is a letter of it. */
const valueStart = /(?:^|[,[{]|(?:^|\s)[?-]\s|:(?:\s|$))\s*(?:[!&]\S*\s+)*$/;
const keyLine = /^\s*(?:- +)?[\w.-]+:(?:\s|$)/;

/**
 * The first text in quotes that does not end in its line, and that runs to the end of the file or over a line that begins with
 * a key. A text that is meant to go on in the next line does neither.
 */
export function unclosedQuote(text: string) {
  let block: number | undefined;
  let lineStart = 0;
  while (lineStart <= text.length) {
    const lineEnd = endOfLine(text, lineStart);
    const line = text.slice(lineStart, lineEnd);
    const indent = line.length - line.trimStart().length;
    if (block !== undefined && (line.trim() === "" || indent > block)) {
      lineStart = lineEnd + 1;
      continue;
    }
    block = /(?::|-)\s+[|>][-+0-9]*\s*(?:#.*)?$/.test(line) ? indent : undefined;
    let next = lineEnd + 1;
    for (let at = lineStart; at < lineEnd; at++) {
      const character = text[at];
      if (character === "#" && /(?:^|\s)$/.test(text.slice(lineStart, at))) break;
      if ((character !== '"' && character !== "'") || !valueStart.test(text.slice(lineStart, at))) continue;
      const end = closing(text, at + 1, character);
      if (end !== undefined && end < lineEnd) {
        at = end;
        continue;
      }
      const inside = text.slice(lineEnd + 1, end ?? text.length);
      if (end === undefined || inside.split("\n").some((each) => keyLine.test(each)))
        return { offset: at, quote: character };
      next = endOfLine(text, end) + 1;
      break;
    }
    lineStart = next;
  }
  return undefined;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

function closing(text: string, from: number, quote: string): number | undefined {
  for (let at = from; at < text.length; at++) {
    if (quote === '"' && text[at] === "\\") at++;
    else if (text[at] === quote) {
      if (quote === "'" && text[at + 1] === "'") at++;
      else return at;
    }
  }
  return undefined;
}
