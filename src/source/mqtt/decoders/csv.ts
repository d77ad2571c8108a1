// Lines of separated values.

import type { Decoder } from "./decoder.ts";
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
 * field is not there. A field is text; with a decimal comma one that is a number comes with a point.
 */
export function csvDecoder({ separator, header, decimal }: CsvOptions): Decoder {
  return (payload) => {
    const rows = utf8(payload)
      .split(/\r\n|\n|\r/)
      .filter((line) => line !== "")
      .map((line) => fields(line, separator).map((field) => value(field, decimal)));
    if (!header) return rows;
    const [names = [], ...lines] = rows;
    return lines.map((row) => Object.fromEntries(row.map((field, i) => [names[i] ?? String(i), field])));
  };
}

function value(field: string, decimal: "." | ","): string | undefined {
  const trimmed = field.trim();
  if (trimmed === "") return undefined;
  return decimal === "," && /^[+-]?\d*,\d+$/.test(trimmed) ? trimmed.replace(",", ".") : trimmed;
}

/** Quotes may surround a field and are doubled inside (RFC 4180); a line break in quotes is not supported. */
function fields(line: string, separator: string): string[] {
  const found: string[] = [];
  let at = 0;
  while (at <= line.length) {
    if (line[at] === '"') {
      const match = /^"((?:[^"]|"")*)"/.exec(line.slice(at));
      const end = at + (match?.[0].length ?? 0);
      if (!match || (end < line.length && !line.startsWith(separator, end)))
        throw new PayloadError(`is not CSV: ${sample(Buffer.from(line))}`);
      found.push((match[1] ?? "").replaceAll('""', '"'));
      at = end + separator.length;
    } else {
      const end = line.indexOf(separator, at);
      found.push(line.slice(at, end < 0 ? line.length : end));
      at = end < 0 ? line.length + 1 : end + separator.length;
    }
  }
  return found;
}
