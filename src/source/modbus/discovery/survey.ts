// Which addresses of a unit answer: found by asking for blocks and halving those that are refused. Slow and gentle. Pure but for `read`.

import type { Table } from "../config/value-type.ts";
import type { ReadWords } from "./sunspec.ts";

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

/** What is still to be asked for. `half`: which half of a piece that was refused. */
interface Piece {
  readonly start: number;
  readonly count: number;
  readonly half?: "first" | "second";
}

/** Yields the ranges that answer, by ascending address; neighbouring ones as one. */
export async function* survey(
  read: ReadWords,
  { table, from, to, block, smallest }: SurveyOptions,
): AsyncGenerator<AnsweringRange> {
  let open: { start: number; values: number[] } | undefined;
  let most = block;
  let firstHalfEnd: number | undefined;
  const pieces: Piece[] = [];
  for (let start = from; start < to; start += block) pieces.push({ start, count: Math.min(block, to - start) });
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
    const { start, count, half } = piece;
    if (count > most) {
      pieces.unshift({ start, count: most }, { start: start + most, count: count - most });
      continue;
    }
    const values = await read(table, start, count);
    if (values) {
      // Both halves are there and the whole was not given: it is the length that the device does not allow.
      if (half === "second" && firstHalfEnd === start) most = Math.max(count, smallest);
      firstHalfEnd = half === "first" ? start + count : undefined;
      if (open && open.start + open.values.length === start) open.values.push(...values);
      else {
        if (open) yield { table, ...open };
        open = { start, values: [...values] };
      }
    } else if (count > smallest) {
      const middle = Math.ceil(count / 2);
      pieces.unshift(
        { start, count: middle, half: "first" },
        { start: start + middle, count: count - middle, half: "second" },
      );
    }
  }
  if (open) yield { table, ...open };
}
