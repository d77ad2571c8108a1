// A series as a picture of letters: braille, two dots wide and four high in each, with the values at its sides. Pure.
import { number } from "./figures.ts";

/** For each of as many steps of time as the picture has dots: the least and the greatest value; undefined: none. */
type PlotColumns = readonly ({ readonly min: number; readonly max: number } | undefined)[];

interface PlotOptions {
  /** Letters high. */
  readonly height: number;
  readonly from: string;
  readonly to: string;
}

/** Bits of the dots of a braille letter: left and right, from top to bottom. */
const dots = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const empty = 0x2800;

/** How many dots a picture `width` letters wide, with its axis, has in a row. */
export function plotDots(width: number): number {
  return Math.max(10, width - axisWidth - 2) * 2;
}

const axisWidth = 11;

/** Lines of the picture and its axes. */
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
  // Half of each first: the difference itself may be beyond what a double holds.
  const rowOf = (value: number) => Math.round(((high / 2 - value / 2) / (high / 2 - low / 2)) * (rows - 1));
  let before: { readonly column: number; readonly row: number } | undefined;
  for (const [column, range] of columns.entries()) {
    if (!range) {
      before = undefined;
      continue;
    }
    const [top, bottom] = [rowOf(range.max), rowOf(range.min)];
    // A line from the column before, so that a step is seen as one.
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
