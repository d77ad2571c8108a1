// Arranges the points of a cut in the columns of a block.

import type { Lane } from "../../../core/buffer.ts";
import type { SeriesSorter } from "../format/series-sorter.ts";
import type { BlockCut } from "./block-cut.ts";

/** A block as transferred between threads: columns by series. Series with equal times share a time column. */
export interface LeasedBlock {
  readonly id: number;
  readonly inputs: Uint32Array<ArrayBuffer>;
  /** Start of the times and values of each series. `valueStarts` has one more entry, the end. */
  readonly timeStarts: Uint32Array<ArrayBuffer>;
  readonly valueStarts: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
  /** 1 for each series with late points. */
  readonly late: Uint8Array<ArrayBuffer>;
}

export interface LaidOut {
  readonly block: LeasedBlock;
  readonly places: Uint32Array;
}

/** The sorter's memory above this many points is freed after each block. */
const keptPoints = 65_536;

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
  // A plain loop: an iterator or a callback would allocate an object per series.
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
  /** Input numbers to lease. Undefined: all. */
  readonly inputs?: ReadonlySet<number> | undefined;
  /** Input numbers not to lease. */
  readonly except?: ReadonlySet<number> | undefined;
  /** First sequence number of the segment to start at: `resumeAt` of the previous reply. */
  readonly from?: number | undefined;
}

export interface Taken {
  readonly block: LeasedBlock | undefined;
  /** The search stopped before this segment, so that commits do not wait; it may hold more points. */
  readonly resumeAt: number | undefined;
}
