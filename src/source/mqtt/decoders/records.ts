// Text formats with records: CSV, line protocol and SenML.
import { z } from "zod";
import type { EpochMicros } from "../../../core/point.ts";
import { type CellReader, csvRows } from "../../../lib/values/csv.ts";
import { parseDecimal } from "../../../lib/values/decimal-text.ts";
import { Linear } from "../../../lib/values/linear.ts";
import { ElementList, jsonDocument, lineCount, PayloadError, sample, utf8, withPoint } from "./payload.ts";

export interface CsvOptions {
  readonly separator: string;
  /** Whether the first line contains the column names. */
  readonly header: boolean;
  readonly decimal: "." | ",";
}

/**
 * Rows: `$[0][1]` is the second column of the first line; with a header, `$[0].temp` is a named column. Empty fields
 * and lines are omitted. Fields are texts; a decimal comma in numbers becomes a point. A malformed row, or number
 * (`withPoint`), is a `PayloadError`.
 */
export function csvDecoder({ separator, header, decimal }: CsvOptions): (payload: Buffer) => unknown {
  return (payload) => {
    const rows = new ElementList();
    let names: readonly (string | PayloadError | undefined)[] | undefined;
    const named = (text: unknown, i: number) => [typeof names?.[i] === "string" ? names[i] : String(i), text] as const;
    let fault: PayloadError | undefined;
    const field: CellReader<string | PayloadError | undefined> = (text, _line, _column, wrong) => {
      if (wrong) fault ??= new PayloadError(`is not CSV: ${sample(Buffer.from(text))} ${wrong}`);
      const trimmed = text.trim();
      if (trimmed === "") return undefined;
      return decimal === "," ? withPoint(trimmed) : trimmed;
    };
    const lines = utf8(payload);
    for (const row of csvRows(lines, separator, field)) {
      const found = fault;
      fault = undefined;
      if (found && header && !names) throw found;
      if (row.length === 1 && row[0] === undefined && !found) continue;
      if (header && !names) names = row;
      else
        rows.add(() => {
          if (found) throw found;
          return [names ? Object.fromEntries(row.map(named)) : row];
        });
    }
    return rows.all(lineCount(lines) - (names ? 1 : 0));
  };
}

/**
 * One record per field: `measurement`, `tags`, `field`, `value` and, if given, `time` as a text. A malformed
 * line is a `PayloadError`.
 */
export function lineProtocolRecords(payload: Buffer): unknown {
  const text = utf8(payload);
  const records = new ElementList();
  for (let at = 0; at < text.length; ) {
    if (/\s/.test(text.charAt(at))) at++;
    else if (text.charAt(at) === "#") at = endOf(text, "\n", at);
    else {
      const key = endOf(text, " \n", at);
      let end = -1;
      records.add(() => {
        // Only here quotes enclose a text, which may have several lines. If it has no end, the next line is read.
        const fields = text.charAt(key) === " " ? endOf(text, " \n", key + 1, true) : key;
        end = endOf(text, "\n", fields);
        return recordsOfLine(text.slice(at, key), text.slice(key, fields).trim(), text.slice(fields, end).trim());
      });
      at = end < 0 ? endOf(text, "\n", key) : end;
    }
  }
  // A malformed line may have had any number of fields.
  return records.all(undefined);
}

function recordsOfLine(key: string, fields: string, time: string): readonly object[] {
  const [measurement, ...tags] = split(key, ",");
  const line = `${key} ${fields}`;
  if (!measurement || !fields) throw notLineProtocol(line);
  const named = Object.fromEntries(tags.map((tag) => pair(tag, line)));
  return split(fields, ",", true).map((each) => {
    const [field, text] = pair(each, line);
    const value = fieldValue(text, line);
    return { measurement: unescaped(measurement), tags: named, field, value, ...(time !== "" && { time }) };
  });
}

/** Position of the first of `signs` from `from` on that is neither escaped nor, with `quotes`, in quotes; else the end. */
function endOf(text: string, signs: string, from: number, quotes = false): number {
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const letter = text.charAt(at);
    if (letter === "\\") at++;
    else if (quotes && letter === '"') quoted = !quoted;
    else if (!quoted && signs.includes(letter)) return at;
  }
  if (quoted) throw notLineProtocol(text.slice(from));
  return text.length;
}

function split(text: string, sign: string, quotes = false): string[] {
  const parts: string[] = [];
  for (let from = 0; from <= text.length; ) {
    const end = endOf(text, sign, from, quotes);
    parts.push(text.slice(from, end));
    from = end + 1;
  }
  return parts;
}

function pair(text: string, line: string): [string, string] {
  const at = endOf(text, "=", 0);
  if (at === 0 || at === text.length) throw notLineProtocol(line);
  return [unescaped(text.slice(0, at)), unescaped(text.slice(at + 1))];
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}

function fieldValue(text: string, line: string): number | bigint | boolean | string {
  if (text.startsWith('"')) return text.slice(1, -1);
  if (/^(t|true)$/i.test(text)) return true;
  if (/^(f|false)$/i.test(text)) return false;
  const value = parseDecimal(text.replace(/[iu]$/, ""));
  if (value === undefined) throw notLineProtocol(line);
  return value;
}

function notLineProtocol(line: string): PayloadError {
  return new PayloadError(`is not line protocol: ${sample(Buffer.from(line))}`);
}

const record = z.object({
  bn: z.string().optional(),
  bt: z.number().optional(),
  bv: z.number().optional(),
  n: z.string().optional(),
  t: z.number().optional(),
  // A value that is none costs its record, not the others.
  v: z.unknown().optional(),
  vb: z.unknown().optional(),
  vs: z.unknown().optional(),
});

/** A record with any base, valid or not. */
const withBases = z.record(z.string(), z.unknown()).refine((each) => "bn" in each || "bt" in each || "bv" in each);

/** Adds the base, without binary rounding errors. A bigint is beyond the exact range of doubles. */
function withBase(value: unknown, base: number): unknown {
  if (base === 0 || (typeof value !== "number" && typeof value !== "bigint")) return value;
  return new Linear(1, base).apply(Number(value));
}

/** Smaller times are relative to now, in seconds (RFC 8428, 4.5.3). */
const relative = 2 ** 28;

/**
 * Records with `name`, `value` and `time` in seconds since 1970. Records without a value are omitted. A malformed record
 * is a `PayloadError`. The payload is malformed if such a record has a base, which concerns all records after it.
 */
export function senmlRecords(payload: Buffer, arrival: EpochMicros): unknown {
  const pack = z.array(z.unknown()).safeParse(jsonDocument(payload));
  if (!pack.success) throw notSenml(pack.error);
  const records = new ElementList();
  let name = "";
  let time = 0;
  let base = 0;
  for (const each of pack.data) {
    const { data, error } = record.safeParse(each);
    if (error && withBases.safeParse(each).success) throw notSenml(error);
    records.add(() => {
      if (!data) throw notSenml(error);
      const { bn, bt, bv, n = "", t = 0, v, vb, vs } = data;
      name = bn ?? name;
      time = bt ?? time;
      base = bv ?? base;
      const value = v === undefined ? (vb ?? vs) : withBase(v, base);
      const at = time + t;
      return value === undefined ? [] : [{ name: name + n, value, time: at < relative ? arrival / 1e6 + at : at }];
    });
  }
  return records.all(pack.data.length);
}

function notSenml(error: z.ZodError): PayloadError {
  return new PayloadError(`is not SenML: ${z.prettifyError(error).split("\n")[0] ?? ""}`);
}
