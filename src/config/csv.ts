// Tables as spreadsheets save them: cells with their positions. Separator and decimal comma are found out.

export interface Cell {
  readonly text: string;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export type Row = readonly Cell[];

export interface Table {
  /** The header and all further rows, read anew at each call; empty ones and comments (`#` first) are left out. */
  readonly rows: () => Iterable<Row>;
  /** What stands between cells. With a semicolon numbers have a decimal comma, as where spreadsheets write both. */
  readonly separator: string;
  /** A quote that is not closed, if there is one. */
  readonly unclosed: Cell | undefined;
}

export function parseCsv(given: string): Table {
  const text = given.replace(/^\ufeff/, "");
  // Spreadsheets may name the separator in a first line of its own.
  const named = /^sep=([,;\t|])\r?\n/i.exec(text);
  const separator = named?.[1] ?? separatorOf(text);
  const from = named?.[0].length ?? 0;
  let unclosed: Cell | undefined;
  for (const _row of rowsOf(text, separator, from, (cell) => (unclosed = cell)));
  return { rows: () => rowsOf(text, separator, from), separator, unclosed };
}

/** `from`: 0, or the start of the second line. Calls `unclosed` with the cell whose quote is not closed. */
function* rowsOf(
  text: string,
  separator: string,
  from: number,
  unclosed?: (cell: Cell) => void,
): Generator<Row, void, undefined> {
  let row: Cell[] = [];
  let line = from === 0 ? 1 : 2;
  let lineStart = from;
  let at = from;
  while (at <= text.length) {
    const start = { line, column: at - lineStart + 1 };
    let cell = "";
    if (text[at] === '"') {
      const quoted = /"((?:[^"]|"")*)("?)/y;
      quoted.lastIndex = at;
      const match = quoted.exec(text);
      cell = (match?.[1] ?? "").replaceAll('""', '"');
      if (match?.[2] !== '"') unclosed?.({ text: cell, ...start });
      at += match?.[0].length ?? 1;
      const breaks = (match?.[0].match(/\n/g) ?? []).length;
      if (breaks > 0) {
        line += breaks;
        lineStart = text.lastIndexOf("\n", at - 1) + 1;
      }
    }
    const end = endOfCell(text, at, separator);
    cell += text.slice(at, end).trim();
    row.push({ text: cell, ...start });
    at = end;
    if (text[at] === separator) {
      at++;
      continue;
    }
    if (row.some(({ text: written }) => written !== "") && !row[0]?.text.startsWith("#")) yield row;
    row = [];
    if (at >= text.length) break;
    at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
    line++;
    lineStart = at;
  }
}

function endOfCell(text: string, from: number, separator: string): number {
  let at = from;
  while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at++;
  return at;
}

/** The one that stands in the header most often. */
function separatorOf(text: string): string {
  const header = text.split(/\r?\n/).find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].toSorted((a, b) => count(b) - count(a))[0] ?? ",";
}
