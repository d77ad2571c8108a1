// Combines columns into one data frame: the union of their times, null where a column has no value.
import { epochMicros } from "../../core/point.ts";
import type { DataFrame } from "../../wire/results.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import { emptyMap } from "../call/params.ts";
import { invalidParams } from "../call/rpc-fault.ts";
import type { BlockColumns } from "../store/block-format.ts";

export interface Column {
  readonly key: string;
  /** Strictly ascending. */
  readonly times: ArrayLike<number>;
  readonly values: ArrayLike<number>;
}

/** More would exceed the memory of a small machine and of most clients. */
const maxCells = 5_000_000;

/** Counts the values of a response while they are read, so that an oversized one is not read completely. */
export class CellBudget {
  #left = maxCells;

  /** Throws -32602 at `data` if there are too many. */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0)
      throw invalidParams("data", `would return more than ${maxCells} values: narrow the window or use a rollup`);
  }

  /** Passes `blocks` on; throws like `take`. */
  *counted(blocks: Iterable<BlockColumns>): Generator<BlockColumns> {
    for (const block of blocks) {
      this.take(block.times.length);
      yield block;
    }
  }
}

/** The last `last` values of each column; all, if undefined. Throws -32602 at `data` if the frame would be too large. */
export function buildFrame(whole: readonly Column[], last?: number): DataFrame {
  const columns = last === undefined ? whole : whole.map((column) => lastOf(column, last));
  const times = unionOf(columns);
  if (times.length * columns.length > maxCells)
    throw invalidParams(
      "data",
      `would return ${times.length} times for ${columns.length} series: narrow the window or use a rollup`,
    );
  // `__proto__` is a valid alias.
  const series = emptyMap<(number | null)[]>();
  for (const { key, times: own, values } of columns) {
    const cells: (number | null)[] = [];
    let from = 0;
    for (let i = 0; i < times.length; i++) {
      if (own[from] === times[i]) {
        const value = values[from++]!;
        // A sum may overflow, and JSON has no infinity.
        cells.push(Number.isFinite(value) ? value : null);
      } else cells.push(null);
    }
    series[key] = cells;
  }
  return { times: Array.from(times, (time) => formatTimestamp(epochMicros(time))), series };
}

function lastOf({ key, times, values }: Column, last: number): Column {
  return { key, times: Array.from(times).slice(-last), values: Array.from(values).slice(-last) };
}

function unionOf(columns: readonly Column[]): Float64Array {
  const [first, ...others] = columns;
  if (!first) return new Float64Array();
  if (others.every(({ times }) => sameTimes(times, first.times))) return Float64Array.from(first.times);
  let length = 0;
  for (const { times } of columns) length += times.length;
  const all = new Float64Array(length);
  let at = 0;
  for (const { times } of columns) {
    all.set(times, at);
    at += times.length;
  }
  all.sort();
  let count = 0;
  for (const time of all) if (count === 0 || all[count - 1] !== time) all[count++] = time;
  return all.subarray(0, count);
}

function sameTimes(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
