// The plots of `tagferry read` in the terminal.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { visible } from "../../lib/text/visible.ts";
import type { MethodCaller } from "../../upload/client/method-caller.ts";
import { itemData } from "../../upload/signals/item-data.ts";
import { formatRfcDuration } from "../../wire/rfc-duration.ts";
import { formatTimestamp, parseTimestamp } from "../../wire/timestamp.ts";
import type { Console } from "../terminal/console.ts";
import { count, number } from "../terminal/text.ts";
import type { ReadItem, ReadQuery } from "./read-rows.ts";

const height = 10;
const minute = 60e6;

interface Column {
  min: number;
  max: number;
}

/** Plots each item. `width`: characters in a line. Resolves with false if the reader closed the pipe. */
export async function plotItems(
  caller: MethodCaller,
  items: readonly ReadItem[],
  { from, before, rollup: asked }: ReadQuery,
  width: number | undefined,
  io: Console,
): Promise<boolean> {
  const dots = plotDots(width ?? process.stdout.columns ?? 80);
  const perDot = (before - from) / dots;
  for (const { item, input, unit, enumeration } of items) {
    // For a dot of a minute or more, the minimum and maximum suffice. Enumerations have neither.
    const fits = enumeration || perDot < minute ? undefined : formatRfcDuration(Math.floor(perDot / minute) * minute);
    const rollup = asked === "window" || enumeration ? undefined : (asked ?? fits);
    const columns: (Column | undefined)[] = Array.from({ length: dots }, () => undefined);
    let points = 0;
    for await (const { times, series } of itemData(caller, { items: [item], from, before, rollup }, io.signal)) {
      const least = series[rollup === undefined ? item : `${item}_min`] ?? [];
      const greatest = series[rollup === undefined ? item : `${item}_max`] ?? [];
      const counts = rollup === undefined ? undefined : (series[`${item}_count`] ?? []);
      for (const [i, text] of times.entries()) {
        const [min, max, time] = [least[i] ?? null, greatest[i] ?? null, parseTimestamp(text)];
        if (min === null || max === null || time === undefined) continue;
        points += counts?.[i] ?? (counts ? 0 : 1);
        const dot = Math.min(dots - 1, Math.max(0, Math.floor((time - from) / perDot)));
        const column = columns[dot];
        if (column) {
          column.min = Math.min(column.min, min);
          column.max = Math.max(column.max, max);
        } else columns[dot] = { min, max };
      }
      io.progress(`${input}: ${count(points, "point")}`);
    }
    io.progress(undefined);
    const title = `${visible(input)}${unit === "" ? "" : ` in ${visible(unit)}`}, ${count(points, "point")}`;
    const lines = plot(columns, { height, from: shown(from), to: shown(before) });
    if (!(await io.write(`${[title, ...lines, ""].join("\n")}\n`))) return false;
  }
  return true;
}

/** Rounded down to seconds. */
function shown(time: EpochMicros): string {
  return formatTimestamp(epochMicros(Math.floor(time / 1e6) * 1e6));
}

/** One entry for each column of dots, with the minimum and maximum of its time step. Undefined: no value. */
type PlotColumns = readonly ({ readonly min: number; readonly max: number } | undefined)[];

interface PlotOptions {
  /** Height in characters. */
  readonly height: number;
  readonly from: string;
  readonly to: string;
}

/** Bits of the dots in a braille character: left and right, from top to bottom. */
const dots = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const empty = 0x2800;

/** The number of dots in a row of a plot with axis, `width` characters wide. */
function plotDots(width: number): number {
  return Math.max(10, width - axisWidth - 2) * 2;
}

const axisWidth = 11;

export function plot(columns: PlotColumns, { height, from, to }: PlotOptions): readonly string[] {
  const known = columns.filter((column) => column !== undefined);
  if (known.length === 0) return [];
  let low = Math.min(...known.map(({ min }) => min));
  let high = Math.max(...known.map(({ max }) => max));
  if (low === high) {
    const room = low === 0 ? 1 : Math.abs(low) * 0.1;
    low -= room;
    high += room;
  }
  const rows = height * 4;
  const letters = Array.from({ length: height }, () => new Uint8Array(Math.ceil(columns.length / 2)));
  // Halved first, since the difference may exceed the range of a double.
  const rowOf = (value: number) => Math.round(((high / 2 - value / 2) / (high / 2 - low / 2)) * (rows - 1));
  let before: { readonly column: number; readonly row: number } | undefined;
  for (const [column, range] of columns.entries()) {
    if (!range) {
      before = undefined;
      continue;
    }
    const [top, bottom] = [rowOf(range.max), rowOf(range.min)];
    // Connect to the previous column, so that a step is visible.
    const joined = before?.column === column - 1 ? before.row : top;
    const [first, last] = [Math.min(top, joined), Math.max(bottom, joined)];
    for (let row = first; row <= last; row++) {
      const line = letters[row >> 2];
      const letter = column >> 1;
      if (line) line[letter] = (line[letter] ?? 0) | (dots[row & 3]?.[column & 1] ?? 0);
    }
    before = { column, row: bottom };
  }
  const lines = letters.map((line, index) => {
    const side = index === 0 ? axisNumber(high) : index === height - 1 ? axisNumber(low) : "";
    const picture = Array.from(line, (bits) => (bits === 0 ? " " : String.fromCodePoint(empty + bits))).join("");
    return `${side.padStart(axisWidth - 1)} ${index === 0 || index === height - 1 ? "┤" : "│"}${picture}`.trimEnd();
  });
  const width = Math.ceil(columns.length / 2);
  const between = Math.max(1, width - from.length - to.length);
  return [
    ...lines,
    `${" ".repeat(axisWidth)}└${"─".repeat(width)}`,
    `${" ".repeat(axisWidth + 1)}${from}${" ".repeat(between)}${to}`,
  ];
}

function axisNumber(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude >= 1e8 || magnitude < 1e-4)) return value.toExponential(2);
  return magnitude >= 100 ? number(value) : String(Number(value.toPrecision(4)));
}
