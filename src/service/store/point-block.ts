// Merges, joins and slices points of one signal in columns.
import { lowerBound } from "../../lib/values/lists.ts";

/** Points by strictly ascending time, in columns of equal length. */
export interface BlockColumns {
  /** Microseconds since the epoch. */
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/** Merges both. At equal times, `later` wins. */
export function mergeColumns(earlier: BlockColumns, later: BlockColumns): BlockColumns {
  const length = earlier.times.length + later.times.length;
  const times = new Float64Array(length);
  const values = new Float64Array(length);
  let i = 0;
  let j = 0;
  let at = 0;
  while (i < earlier.times.length || j < later.times.length) {
    const a = i < earlier.times.length ? earlier.times[i]! : Number.POSITIVE_INFINITY;
    const b = j < later.times.length ? later.times[j]! : Number.POSITIVE_INFINITY;
    if (a < b) {
      times[at] = a;
      values[at++] = earlier.values[i++]!;
    } else {
      if (a === b) i++;
      times[at] = b;
      values[at++] = later.values[j++]!;
    }
  }
  return at === length ? { times, values } : { times: times.subarray(0, at), values: values.subarray(0, at) };
}

/** Concatenates blocks. */
export function joinedBlocks(blocks: Iterable<BlockColumns>): BlockColumns {
  const all = [...blocks];
  const [only] = all;
  if (only && all.length === 1) return only;
  let length = 0;
  for (const { times } of all) length += times.length;
  const times = new Float64Array(length);
  const values = new Float64Array(length);
  let at = 0;
  for (const block of all) {
    times.set(block.times, at);
    values.set(block.values, at);
    at += block.times.length;
  }
  return { times, values };
}

/** Limit for the time span of a block in microseconds, below which time differences are exact. */
const maxBlockSpan = 2 ** 53;
/** Points of a full block. With 8, 4 or 2 bytes a point, one, two or four blocks fill a page of 8 KiB. */
export const fullBlock = 960;

/** Divides points into as few blocks as can be stored. */
export function* fullBlocks(columns: BlockColumns): Generator<BlockColumns> {
  const { times } = columns;
  for (let at = 0, end = 0; at < times.length; at = end) {
    end = Math.min(at + fullBlock, lowerBound(times, times[at]! + maxBlockSpan, at));
    yield sliceColumns(columns, at, end);
  }
}

/** Views of the points with index `from` to before `to`. */
export function sliceColumns({ times, values }: BlockColumns, from: number, to: number): BlockColumns {
  return from === 0 && to === times.length
    ? { times, values }
    : { times: times.subarray(from, to), values: values.subarray(from, to) };
}
