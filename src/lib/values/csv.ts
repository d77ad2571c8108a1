// Parser for separated values (RFC 4180) that reports the position of each cell. Quotes may surround a cell and are
// doubled inside. A quoted cell may span several lines.

export type CellFault = "has a quote that is not closed" | "has text behind its closing quote";

/** Converts a cell. Bare cells are trimmed. `line` and `column` count from 1. */
export type CellReader<T> = (text: string, line: number, column: number, fault: CellFault | undefined) => T;

/** The rows of `text`. An empty line is a row with one empty cell. `firstLine`: number of the first line. */
export function* csvRows<T>(
  text: string,
  separator: string,
  read: CellReader<T>,
  firstLine = 1,
): Generator<T[], void, undefined> {
  const between = separator.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const cell = new RegExp(
    `(?:"([^"]*(?:""[^"]*)*)("?))?((?:(?!${between})[^\\r\\n])*)(${between}|\\r\\n|\\n|\\r|$)`,
    "y",
  );
  let row: T[] = [];
  let line = firstLine;
  let lineStart = 0;
  for (let at = 0; ; at = cell.lastIndex) {
    const [, quoted, closing, bare = "", end] = cell.exec(text) ?? [];
    const rest = bare.trim();
    if (quoted === undefined) row.push(read(rest, line, at - lineStart + 1, undefined));
    else {
      const fault =
        closing === ""
          ? "has a quote that is not closed"
          : rest === ""
            ? undefined
            : "has text behind its closing quote";
      row.push(read(quoted.replaceAll('""', '"'), line, at - lineStart + 1, fault));
      const breaks = quoted.split("\n").length - 1;
      line += breaks;
      if (breaks > 0) lineStart = at + 1 + quoted.lastIndexOf("\n") + 1;
    }
    if (end === separator) continue;
    yield row;
    if (!end) return;
    row = [];
    line++;
    lineStart = cell.lastIndex;
  }
}
