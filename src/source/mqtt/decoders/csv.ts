// Lines of separated values.
import { type CellReader, csvRows } from "../../../lib/csv.ts";
import { PayloadError, sample } from "./payload-error.ts";
import { utf8 } from "./utf8.ts";

export interface CsvOptions {
  readonly separator: string;
  /** The first line names the columns. */
  readonly header: boolean;
  readonly decimal: "." | ",";
}

/**
 * Rows: `$[0][1]` is the second column of the first line; with a header `$[0].temp` is the column of that name. An empty
 * field is not there, nor is an empty line. A field is text; with a decimal comma one that is a number comes with a point.
 */
export function csvDecoder({ separator, header, decimal }: CsvOptions): (payload: Buffer) => unknown {
  const field: CellReader<string | undefined> = (text, _line, _column, fault) => {
    if (fault) throw new PayloadError(`is not CSV: ${sample(Buffer.from(text))} ${fault}`);
    const trimmed = text.trim();
    if (trimmed === "") return undefined;
    return decimal === "," && /^[+-]?\d*,\d+$/.test(trimmed) ? trimmed.replace(",", ".") : trimmed;
  };
  return (payload) => {
    const rows = [...csvRows(utf8(payload), separator, field)].filter((row) => row.length > 1 || row[0] !== undefined);
    if (!header) return rows;
    const [names = [], ...lines] = rows;
    return lines.map((row) => Object.fromEntries(row.map((text, i) => [names[i] ?? String(i), text])));
  };
}
