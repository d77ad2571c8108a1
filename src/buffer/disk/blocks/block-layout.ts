// Puts the points of a cut into the columns of a block.

import type { Lane } from "../../../core/buffer.ts";
import type { SeriesSorter } from "../format/series-sorter.ts";
import type { BlockCut } from "./block-cut.ts";

/** A block as it travels between the threads: columns behind each other; series that share their times share a column. */
export interface ShelfBlock {
  readonly id: number;
  /** Numbers of the inputs. */
  readonly inputs: Uint32Array<ArrayBuffer>;
  /** Where the times and the values of each series begin. `valueStarts` has one entry more. */
  readonly timeStarts: Uint32Array<ArrayBuffer>;
  readonly valueStarts: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
  /** 1 for each series that has late points. */
  readonly late: Uint8Array<ArrayBuffer>;
}

export interface LaidOut {
  readonly block: ShelfBlock;
  /** Of the block's series, in the segment's dictionary. */
  readonly places: Uint32Array;
}

/** Points that memory is kept for between blocks. */
const keptPoints = 65_536;

/** `numbers` gives the number of the input by its place in the segment's dictionary. */
export function layOut(
  id: number,
  cut: Pick<BlockCut, "places" | "times" | "values" | "points" | "late">,
  numbers: readonly number[],
  sorter: SeriesSorter,
): LaidOut {
  const { times, values, points } = cut;
  const columns = sorter.sort(cut.places, times, values, 0, points);
  const count = columns.seriesCount;
  const timeStarts = new Uint32Array(count);
  const packed = new Float64Array(points);
  let used = 0;
  for (let i = 0; i < count; i++) {
    const [start, end] = [columns.starts[i]!, columns.starts[i + 1]!];
    const shared = i > 0 ? timeStarts[i - 1]! : 0;
    if (i > 0 && used - shared === end - start && equalColumns(packed, shared, columns.times, start, end)) {
      timeStarts[i] = shared;
      continue;
    }
    timeStarts[i] = used;
    packed.set(columns.times.subarray(start, end), used);
    used += end - start;
  }
  const places = columns.series.slice(0, count);
  const inputs = new Uint32Array(count);
  const late = new Uint8Array(count);
  // An iterator or a callback would make an object for each series.
  for (let i = 0; i < count; i++) {
    inputs[i] = numbers[places[i]!]!;
    if (cut.late.size > 0 && cut.late.has(places[i]!)) late[i] = 1;
  }
  const block = {
    id,
    inputs,
    timeStarts,
    valueStarts: columns.starts.slice(0, count + 1),
    times: packed.slice(0, used),
    values: columns.values.slice(0, points),
    late,
  };
  sorter.shrink(keptPoints);
  return { block, places };
}

function equalColumns(a: Float64Array, at: number, b: Float64Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (a[at + i - start] !== b[i]) return false;
  return true;
}

export interface TakeRequest {
  readonly lane: Lane;
  readonly maxPoints: number;
  /** As in `TakeOptions`. Undefined: `maxPoints`. */
  readonly enough?: number | undefined;
  /** Numbers of the series that are wanted. Undefined: all. */
  readonly inputs?: ReadonlySet<number> | undefined;
  /** Numbers of the series that are not wanted. */
  readonly except?: ReadonlySet<number> | undefined;
  /** Sequence number of the segment to begin with: `resumeAt` of the request before. */
  readonly from?: number | undefined;
}

export interface Taken {
  readonly block: ShelfBlock | undefined;
  /** There may be more from that segment on; looking there was left for another request, so that commits are not kept waiting. */
  readonly resumeAt: number | undefined;
}
