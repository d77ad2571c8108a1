// Data of the service as CSV or NDJSON. Pure.
import type { EpochMicros } from "../../core/point.ts";
import type { DataFrame } from "../../wire/results.ts";
import { csvCell, numberCell } from "../terminal/text.ts";

export interface ReadItem {
  readonly input: string;
  readonly item: string;
  readonly unit: string;
  readonly enumeration: boolean;
}

export interface ReadQuery {
  readonly from: EpochMicros;
  readonly before: EpochMicros;
  /** RFC 3339 duration, or `window`. Undefined: raw points; for a plot, a rollup that fits its width. */
  readonly rollup: string | undefined;
}

export type RowFormat = "csv" | "ndjson";

/** `columns`: `value` for points, otherwise the aggregates of a rollup. */
export function csvHeader(columns: readonly string[]): string {
  return `${["input", "time", ...columns].join(",")}\n`;
}

/** The lines of one item, with the columns of `csvHeader`. Times without a value are omitted. */
export function rowsOf(
  frame: DataFrame,
  { item, input, enumeration }: ReadItem,
  format: RowFormat,
  columns: readonly string[],
): string {
  const { times, series } = frame;
  const keys = columns.map((column) => (column === "value" ? item : `${item}_${column}`));
  if (enumeration && !keys.some((key) => key in series)) return stateRows(frame, item, input);
  const values = keys.map((key) => series[key] ?? []);
  let text = "";
  for (const [i, time] of times.entries()) {
    const row = values.map((of) => of[i] ?? null);
    if (row.every((value) => value === null)) continue;
    const members = columns.map((column, k) => [column, row[k]]);
    text +=
      format === "csv"
        ? `${csvCell(input)},${time},${row.map((value) => (value === null ? "" : numberCell(value))).join(",")}\n`
        : `${JSON.stringify({ input, time, ...Object.fromEntries(members) })}\n`;
  }
  return text;
}

/** Merges parts of one bucket: a `window` rollup over several requests. */
export function joinedFrames(before: DataFrame | undefined, { times, series }: DataFrame): DataFrame {
  if (!before || before.times.length === 0) return { times, series };
  const [time] = before.times;
  if (time === undefined || times.length === 0) return before;
  const all: Record<string, (number | null)[]> = {};
  const first = (frame: DataFrame["series"], key: string) => frame[key]?.[0] ?? undefined;
  for (const key of new Set([...Object.keys(before.series), ...Object.keys(series)])) {
    const [a, b] = [first(before.series, key), first(series, key)];
    const item = key.replace(/_[^_]*$/, "");
    const sum = (column: string) =>
      (first(before.series, `${item}_${column}`) ?? 0) + (first(series, `${item}_${column}`) ?? 0);
    if (a === undefined || b === undefined) all[key] = [a ?? b ?? null];
    else if (key.endsWith("_min")) all[key] = [Math.min(a, b)];
    else if (key.endsWith("_max")) all[key] = [Math.max(a, b)];
    else if (key.endsWith("_avg")) all[key] = [sum("sum") / sum("count")];
    else all[key] = [a + b];
  }
  return { times: [time], series: all };
}

/** Seconds in each state: the rollup of enumerations in version 1.1. */
function stateRows({ times, series }: DataFrame, item: string, input: string): string {
  const states = Object.keys(series).flatMap((key) =>
    key.startsWith(`${item}_`) ? [[key.slice(item.length + 1), series[key] ?? []] as const] : [],
  );
  return times
    .map((time, i) => {
      const seconds = states.flatMap(([state, values]) => {
        const value = values[i] ?? null;
        return value === null ? [] : [[state, value] as const];
      });
      return seconds.length === 0
        ? ""
        : `${JSON.stringify({ input, time, secondsInState: Object.fromEntries(seconds) })}\n`;
    })
    .join("");
}
