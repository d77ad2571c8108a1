// Separated values (RFC 4180), with the places of the cells. Quotes may surround a cell and are doubled inside; a quoted cell
// may go over several lines. Pure.

export type CellFault = "has a quote that is not closed" | "has text behind its closing quote";

/** What becomes of a cell. Blanks around a bare one are left out. `line` and `column` count from 1. */
export type CellReader<T> = (text: string, line: number, column: number, fault: CellFault | undefined) => T;

/** The lines of `text` as rows, empty ones as a single empty cell. `firstLine` is the number of the first. */
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
