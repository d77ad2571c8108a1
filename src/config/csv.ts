// Tables as spreadsheets save them: cells with their positions. Separator and decimal comma are found out.
import { type CellFault, csvRows } from "../lib/csv.ts";

export interface Cell {
  readonly text: string;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export type Row = readonly Cell[];

interface Table {
  /** The header and all further rows, read again at each call; empty ones and comments (`#` first) are left out. */
  readonly rows: () => Iterable<Row>;
  /** What stands between cells. With a semicolon numbers have a decimal comma, as where spreadsheets write both. */
  readonly separator: string;
  /** The first cell that is not right, if there is one. */
  readonly broken: (Cell & { readonly fault: CellFault }) | undefined;
}

export function parseCsv(given: string): Table {
  const text = given.replace(/^\ufeff/, "");
  // Spreadsheets may name the separator in a first line of its own.
  const named = /^sep=([,;\t|])\r?\n/i.exec(text);
  const separator = named?.[1] ?? separatorOf(text);
  const body = text.slice(named?.[0].length ?? 0);
  const firstLine = named ? 2 : 1;
  let broken: Table["broken"];
  const look = (of: string, line: number, column: number, fault: CellFault | undefined) => {
    if (fault) broken ??= { text: of, line, column, fault };
  };
  for (const _row of csvRows(body, separator, look, firstLine));
  return { rows: () => filled(csvRows(body, separator, cellOf, firstLine)), separator, broken };
}

function cellOf(text: string, line: number, column: number): Cell {
  return { text, line, column };
}

function* filled(rows: Iterable<Row>): Generator<Row, void, undefined> {
  for (const row of rows) if (row.some(({ text }) => text !== "") && !row[0]?.text.startsWith("#")) yield row;
}

/** The one that stands in the header most often. */
function separatorOf(text: string): string {
  const header = text.split(/\r?\n/).find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].toSorted((a, b) => count(b) - count(a))[0] ?? ",";
}
