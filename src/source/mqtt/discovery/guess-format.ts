// Format detection for payloads that are not a JSON document.
import type { EpochMicros } from "../../../core/point.ts";
import { jsonDocument, jsonLines } from "../decoders/json.ts";
import { ifReadable, utf8 } from "../decoders/payload.ts";
import { payloadTime } from "../decoders/payload-time.ts";
import { isScalar, numberDecoder, parseDecimal, type Scalar } from "../decoders/plain-value.ts";
import { csvDecoder, lineProtocolRecords, senmlRecords } from "../decoders/records.ts";

/** A value that a tag with these fields would read. */
export interface GuessedValue {
  /** Names that distinguish the value within its topic; `{name}` for names from the payload. */
  readonly names: readonly string[];
  readonly value: Scalar;
  readonly tag: Readonly<Record<string, unknown>>;
}

type Guess = (payload: Buffer, now: EpochMicros) => readonly GuessedValue[];
const guesses: readonly Guess[] = [senml, jsonLinesOf, lineProtocol, number, csv];

/** Values of the first matching format, or none. */
export function guessFormat(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  for (const guess of guesses) {
    const found = ifReadable(() => guess(payload, now)) ?? [];
    if (found.length > 0) return found;
  }
  return [];
}

type Records = readonly Readonly<Record<string, unknown>>[];

function senml(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  if (!/^\s*\[\s*\{[^}]*"b?n"\s*:/.test(utf8(payload))) return [];
  const records = senmlRecords(payload, now) as Records; // as returned by the decoder
  const [first] = records;
  if (!first || records.some(({ name }) => name === "")) return [];
  return [{ names: ["{name}"], value: scalar(first["value"]), tag: { format: "senml" } }];
}

function jsonLinesOf(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  if (ifReadable(() => jsonDocument(payload)) !== undefined) return [];
  const lines = jsonLines(payload);
  const [first] = Array.isArray(lines) ? (lines as readonly unknown[]) : []; // as returned by the decoder
  if (typeof first !== "object" || first === null || Array.isArray(first)) return [];
  const members = Object.entries(first).filter(([name]) => /^[A-Za-z_][\w-]*$/.test(name));
  const time = members.find(([name, value]) => timeName.test(name) && isTime(value, now))?.[0];
  return members
    .filter(([name, value]) => name !== time && (typeof value === "number" || typeof value === "boolean"))
    .map(([name, value]) => ({
      names: [name],
      value: scalar(value),
      tag: {
        format: "ndjson",
        value: `$[*].${name}`,
        each: "sample",
        ...(time !== undefined && { time: { at: `$[*].${time}` } }),
      },
    }));
}

function lineProtocol(payload: Buffer): readonly GuessedValue[] {
  // The trailing time distinguishes line protocol from a sentence.
  if (!/^\S+ \S+=\S+(?: \d{16,})\s*$/m.test(utf8(payload))) return [];
  const [first] = lineProtocolRecords(payload) as Records; // as returned by the decoder
  const names = ["{measurement}", "{field}"];
  return first ? [{ names, value: scalar(first["value"]), tag: { format: "lineProtocol" } }] : [];
}

/** A number with a unit or a decimal comma. */
function number(payload: Buffer): readonly GuessedValue[] {
  for (const decimal of [".", ","] as const) {
    const value = ifReadable(() => numberDecoder(decimal)(payload));
    if (value !== undefined)
      return [{ names: [], value, tag: { format: "number", ...(decimal === "," && { decimal }) } }];
  }
  return [];
}

const separators = [";", "\t", ","] as const;

/** Columns of the first line, or of the second line if the first is a header. */
function csv(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  const text = utf8(payload);
  const separator = separators.find((each) => text.includes(each));
  if (separator === undefined) return [];
  const decimal = separator !== "," && /(?:^|[;\t])[+-]?\d+,\d+(?:$|[;\t])/m.test(text) ? "," : ".";
  const rows = csvDecoder({ separator, header: false, decimal })(payload) as readonly (readonly string[])[]; // as returned by the decoder
  const header = rows.length > 1 && rows[0]?.every((field) => field !== undefined && parseDecimal(field) === undefined);
  const [names = [], row] = header ? rows : [[], rows[0]];
  if (!row || row.length < 2 || rows.some(({ length }) => length !== row.length)) return [];
  const place = (i: number) => (header ? `$[0][${JSON.stringify(names[i])}]` : `$[0][${i}]`);
  const time = row.findIndex((field) => field !== undefined && isTime(field, now));
  return row.flatMap((field, i): GuessedValue[] => {
    const value = i === time || field === undefined ? undefined : parseDecimal(field);
    if (value === undefined) return [];
    const tag = {
      format: "csv",
      csv: { separator, ...(header === true && { header }) },
      ...(decimal === "," && { decimal }),
      value: place(i),
      ...(time >= 0 && { time: { at: place(time) } }),
    };
    return [{ names: [names[i] ?? String(i)], value, tag }];
  });
}

export const timeName = /^(?:ts|t|time|timestamp|timestamp_ms|last_seen|datetime|received_at|sampled_at)$/i;

export function isTime(value: unknown, now: EpochMicros): boolean {
  return typeof payloadTime(value, "auto", undefined, now) === "number";
}

function scalar(value: unknown): Scalar {
  return isScalar(value) ? value : String(value);
}
