// The part of `tagferry read` that draws: each item as a picture in the terminal.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { MethodCaller } from "../../upload/client/method-caller.ts";
import { itemData } from "../../upload/signals/item-data.ts";
import { formatRfcDuration } from "../../wire/rfc-duration.ts";
import { formatTimestamp, parseTimestamp } from "../../wire/timestamp.ts";
import type { Console } from "../terminal/console.ts";
import { count } from "../terminal/figures.ts";
import { plot, plotDots } from "../terminal/plot.ts";
import { visible } from "../terminal/table.ts";
import type { ReadItem } from "./read-rows.ts";

interface PlotQuery {
  readonly from: EpochMicros;
  readonly before: EpochMicros;
  /** Undefined: one that fits the picture, or the points themselves. */
  readonly rollup: string | undefined;
  /** Letters in a line; undefined: those of the terminal. */
  readonly width: number | undefined;
}

const height = 10;
const minute = 60e6;

interface Column {
  min: number;
  max: number;
}

/** One picture an item, each from requests of its own. Resolves with false when nobody reads any longer. */
export async function plotItems(
  caller: MethodCaller,
  items: readonly ReadItem[],
  { from, before, rollup: asked, width = process.stdout.columns ?? 80 }: PlotQuery,
  io: Console,
): Promise<boolean> {
  const dots = plotDots(width);
  const perDot = (before - from) / dots;
  for (const { item, input, unit, enumeration } of items) {
    // Least and greatest value of a minute or more show all that a dot can show. A state has neither.
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

/** To the second. */
function shown(time: EpochMicros): string {
  return formatTimestamp(epochMicros(Math.floor(time / 1e6) * 1e6));
}
