// Finds where a quote begins that is not closed. The parser complains where it noticed, which may be many lines later.

interface UnclosedQuote {
  readonly offset: number;
  readonly quote: '"' | "'";
}

/** What may stand before a value: a quote further on in a text without quotes is a letter of it. */
const valueStart = /(?:^|[,[{]|(?:^|\s)[?-]\s|:(?:\s|$))\s*(?:[!&]\S*\s+)*$/;
const keyLine = /^\s*(?:- +)?[\w.-]+:(?:\s|$)/;

/**
 * The first text in quotes that does not end in its line, and that runs to the end of the file or over a line that begins with
 * a key. A text that is meant to go on in the next line does neither.
 */
export function unclosedQuote(text: string): UnclosedQuote | undefined {
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
