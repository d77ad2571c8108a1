// The series of a leased block and the positions of their points, in columns. During an outage millions of points are
// leased, often one per series and block. One object for each would fill the thread's heap.

import type { RangeSet } from "../counters/range-set.ts";
import type { BlockCut } from "./block-cut.ts";

export interface SeriesPart {
  readonly place: number;
  readonly points: number;
  /** Sequence numbers of the records that the block takes the series from. */
  readonly ranges: RangeSet;
}

export class SeriesOut implements Pick<BlockCut, "records" | "bySeries" | "leftOut" | "leftOutPoints"> {
  readonly records: RangeSet;
  readonly bySeries: boolean;
  readonly leftOut: ReadonlyMap<number, RangeSet>;
  readonly leftOutPoints: number;
  /** Input numbers, ascending. The other columns have the same order. */
  readonly #inputs: Uint32Array;
  readonly #places: Uint32Array;
  /** Points per series; 0: settled. */
  readonly #points: Uint32Array;
  #count: number;
  #left = 0;

  /** `inputs` and `places` have one entry per series of the block, `valueStarts` one more. */
  constructor(cut: BlockCut, inputs: Uint32Array, places: Uint32Array, valueStarts: Uint32Array) {
    this.records = cut.records;
    this.bySeries = cut.bySeries;
    this.leftOut = cut.leftOut;
    this.leftOutPoints = cut.leftOutPoints;
    this.#count = inputs.length;
    const order = new Uint32Array(inputs.length);
    let isAscending = true;
    for (let i = 0; i < order.length; i++) {
      order[i] = i;
      if (i > 0 && inputs[i]! < inputs[i - 1]!) isAscending = false;
    }
    if (!isAscending) order.sort((a, b) => inputs[a]! - inputs[b]!);
    this.#inputs = new Uint32Array(order.length);
    this.#places = new Uint32Array(order.length);
    this.#points = new Uint32Array(order.length);
    for (let i = 0; i < order.length; i++) {
      const at = order[i]!;
      this.#inputs[i] = inputs[at]!;
      this.#places[i] = places[at]!;
      this.#points[i] = valueStarts[at + 1]! - valueStarts[at]!;
      this.#left += this.#points[i]!;
    }
  }

  get size(): number {
    return this.#inputs.length;
  }

  /** Number of unsettled series. */
  get count(): number {
    return this.#count;
  }

  /** Number of unsettled points. */
  get points(): number {
    return this.#left;
  }

  /** Marks the series of these inputs as settled. Returns the indices, for `part`, of those that were unsettled. */
  settle(inputs: Uint32Array): Uint32Array {
    const places = new Uint32Array(inputs.length);
    let count = 0;
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i]!;
      // Usually all series are settled at once, in this order.
      const at = this.#inputs[i] === input ? i : this.#find(input);
      if (this.#inputs[at] !== input || this.#points[at] === 0) continue;
      places[count++] = at;
      this.#left -= this.#points[at]!;
      this.#points[at] = 0;
      this.#count--;
    }
    return places.subarray(0, count);
  }

  has(input: number): boolean {
    const at = this.#find(input);
    return this.#inputs[at] === input && this.#points[at] !== 0;
  }

  *parts(): Generator<SeriesPart> {
    for (let at = 0; at < this.#points.length; at++) if (this.#points[at] !== 0) yield this.part(at);
  }

  part(at: number): SeriesPart {
    const place = this.#places[at]!;
    const leftOut = this.leftOut.get(place);
    return { place, points: this.#points[at]!, ranges: leftOut ? this.records.minus(leftOut) : this.records };
  }

  #find(input: number): number {
    let low = 0;
    let high = this.#inputs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#inputs[middle]! < input) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
