// Explains errors of the YAML parser without terms of YAML's grammar.
import { isSecretKey } from "../nodes/excerpt.ts";

interface Explanation {
  readonly message: string;
  readonly hint?: string;
  /** The error does not depend on the preceding text. */
  readonly certain?: true;
}

/** `line` is the line of the error, `column` (from 1) its position. */
export function explain(code: string, message: string, line: string, column: number): Explanation {
  const quotes = needsQuotes(line, column);
  if (quotes !== undefined)
    return { message: "is not YAML here", hint: `put the text in quotes: ${quotes}`, certain: true };
  // After a colon, the parser's message quotes the text, which may be a secret.
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

/** By the parser's error code. Without a `message`, the parser's own is used. */
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

/** Texts that often lack quotes: JSON paths, references in braces, and texts that begin with a brace. */
const unquoted = [
  /([\w.-]+:\s+)(\$(?:[.[])(?:\['[^']*'\]|[^,\s}])*)/g,
  /([\w.-]+:\s+)([^\s"',{}[\]]*\$\{[^}]*\}[^\s"',}]*)/g,
  /([\w.-]+:\s+)([^\s"',{}[\]]*\{[\w.-]+\}[^\s"',}]*(?:\{[\w.-]+\}[^\s"',}]*)*)/g,
];

/** The text before `column` that needs quotes, with quotes: `value: "$.a[0]"`. */
function needsQuotes(line: string, column: number): string | undefined {
  let best: RegExpMatchArray | undefined;
  for (const pattern of unquoted)
    for (const match of line.matchAll(pattern))
      if (stumbles(line.slice(0, match.index), match[2] ?? "") && (best === undefined || match.index <= column))
        best = match;
  if (!best) return undefined;
  const [, key = "", value = ""] = best;
  // Possible secrets are not repeated; a reference is safe.
  const shown = isSecretKey(key.replace(/:\s+$/, "")) && !/^\$\{[^}]*\}$/.test(value) ? "..." : value;
  return `${key}"${shown}"`;
}

/** Inside braces, any bracket ends a text. Elsewhere, only a leading bracket is a problem. */
function stumbles(before: string, text: string): boolean {
  return /[[{]/.test(text) && (/[[{]/.test(before) || /^[[{]/.test(text));
}

/** The first space other than those of ASCII in the line of an error or the one above, outside of quotes and comments. */
export function oddSpace(lines: readonly string[], line: number): { line: number; column: number } | undefined {
  for (const number of [line - 1, line]) {
    const bare = (lines[number - 1] ?? "").replaceAll(/"[^"]*"|'[^']*'|(?:^|\s)#.*$/g, (part) =>
      "_".repeat(part.length),
    );
    const at = bare.search(/[\u200b\ufeff]|(?! )\p{Zs}/u);
    if (at >= 0) return { line: number, column: at + 1 };
  }
  return undefined;
}

/** The text before a value. A quote inside an unquoted text is an ordinary character. */
const valueStart = /(?:^|[,[{]|(?:^|\s)[?-]\s|:(?:\s|$))\s*(?:[!&]\S*\s+)*$/;
const keyLine = /^\s*(?:- +)?[\w.-]+:(?:\s|$)/;

/** The first quoted text that runs to the end of the file or across a line with a key, so is probably unclosed. */
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
