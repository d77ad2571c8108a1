// Points of one signal, in columns or as encoded blocks: merges, joins and slices them, and encodes them as few blocks.
import { lowerBound } from "../../lib/values/lists.ts";
import { type BlockColumns, decodePoints, encodeBlock } from "./block-format.ts";

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
  return sliceColumns({ times, values }, 0, at);
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

/** Views of the points with index `from` to before `to`. */
export function sliceColumns({ times, values }: BlockColumns, from: number, to: number): BlockColumns {
  return from === 0 && to === times.length
    ? { times, values }
    : { times: times.subarray(from, to), values: values.subarray(from, to) };
}

export interface EncodedBlock {
  /** First and last time, microseconds since the epoch. */
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly data: Uint8Array;
}

/** Encodes points as few blocks. The data of each is overwritten by the next one. */
export function* encodedBlocks(columns: BlockColumns): Generator<EncodedBlock> {
  const { times } = columns;
  for (let at = 0, end = 0; at < times.length; at = end) {
    end = Math.min(at + fullBlock, lowerBound(times, times[at]! + maxBlockSpan, at));
    const data = encodeBlock(sliceColumns(columns, at, end));
    yield { first: times[at]!, last: times[end - 1]!, count: end - at, data };
  }
}

const slabBytes = 2 ** 20;
/** Enough for a full insert of doubles. Further slabs are released. */
const keptSlabs = 16;

/** Encodes into memory that is reused after `reset`, since the garbage collector would release megabytes too late. */
export class RunEncoder {
  readonly #slabs: Uint8Array[] = [];
  #slab = 0;
  #at = 0;

  /** Invalidates all results. */
  reset(): void {
    this.#slabs.splice(keptSlabs);
    this.#slab = this.#at = 0;
  }

  encode(columns: BlockColumns): EncodedBlock[] {
    return Array.from(encodedBlocks(columns), (block) => ({ ...block, data: this.#keep(block.data) }));
  }

  #keep(bytes: Uint8Array): Uint8Array {
    if (this.#at + bytes.length > slabBytes) {
      this.#slab++;
      this.#at = 0;
    }
    const slab = (this.#slabs[this.#slab] ??= new Uint8Array(slabBytes));
    const kept = slab.subarray(this.#at, this.#at + bytes.length);
    kept.set(bytes);
    this.#at += bytes.length;
    return kept;
  }
}

export function decodedRun(blocks: readonly EncodedBlock[]): BlockColumns {
  return joinedBlocks(blocks.map(({ data }) => decodePoints(data)));
}
