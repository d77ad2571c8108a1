// Which addresses of a unit answer: found by asking for blocks and halving those that are refused. Slow and gentle. Pure but for `read`.
import type { ReadWords } from "./sunspec.ts";
import type { Table } from "./value-type.ts";

export interface AnsweringRange {
  readonly table: Table;
  readonly start: number;
  /** What they held: words, or bits as 0 and 1. */
  readonly values: readonly number[];
}

export interface SurveyOptions {
  readonly table: Table;
  /** Addresses from `from` to below `to`. */
  readonly from: number;
  readonly to: number;
  /** Most that are asked for at once. */
  readonly block: number;
  /** Refused blocks are not divided further than this: a lone register in between may be missed. */
  readonly smallest: number;
}

/** Yields the ranges that answer, by ascending address; neighbouring ones as one. */
export async function* survey(
  read: ReadWords,
  { table, from, to, block, smallest }: SurveyOptions,
): AsyncGenerator<AnsweringRange> {
  let open: { start: number; values: number[] } | undefined;
  const pieces: { readonly start: number; readonly count: number }[] = [];
  for (let start = from; start < to; start += block) pieces.push({ start, count: Math.min(block, to - start) });
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
    const { start, count } = piece;
    const values = await read(table, start, count);
    if (values) {
      if (open && open.start + open.values.length === start) open.values.push(...values);
      else {
        if (open) yield { table, ...open };
        open = { start, values: [...values] };
      }
    } else if (count > smallest) {
      const half = Math.ceil(count / 2);
      pieces.unshift({ start, count: half }, { start: start + half, count: count - half });
    }
  }
  if (open) yield { table, ...open };
}
