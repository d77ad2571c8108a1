// A leased block: its unsettled series and the positions of their points. Marks them in the segment as leased, then as
// settled or free. In columns: during an outage millions of points are leased, often one per series and block, and one
// object for each would fill the thread's heap.
import { lowerBound } from "../../../lib/values/lists.ts";
import { joinedSpan, type LossReason, type PointCounters } from "../counters/point-counters.ts";
import { type RangeSet, RemovedRanges } from "../counters/ranges.ts";
import type { BufferState } from "../counters/state-file.ts";
import type { Segment } from "../segments/segment.ts";
import type { BlockCut } from "./block-cut.ts";

interface SeriesPart {
  readonly place: number;
  readonly points: number;
  /** Sequence numbers of the records that the block takes the series from. */
  readonly ranges: RangeSet;
}

/** The series of a block, with one entry in each column; `valueStarts` has one more. */
interface LeasedSeries {
  readonly inputs: Uint32Array;
  readonly places: Uint32Array;
  readonly valueStarts: Uint32Array;
  /** Input numbers of series with late points. */
  readonly late: ReadonlySet<number>;
}

export class Lease {
  readonly segment: Segment;
  readonly late: ReadonlySet<number>;
  readonly #cut: Pick<BlockCut, "records" | "bySeries" | "leftOut">;
  /** `settled.whole` covers the records, with gaps for unsettled series. */
  #asWhole = false;
  /** Input numbers, ascending. The other columns have the same order. */
  readonly #inputs: Uint32Array;
  readonly #places: Uint32Array;
  /** Points per series; 0: settled. */
  readonly #points: Uint32Array;
  #count: number;
  #left = 0;

  constructor(segment: Segment, cut: BlockCut, { inputs, places, valueStarts, late }: LeasedSeries) {
    const { records, bySeries, leftOut } = cut;
    this.segment = segment;
    this.late = late;
    // Without the columns of points, which the cut holds as well.
    this.#cut = { records, bySeries, leftOut };
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
    if (bySeries) for (const { place, ranges } of this.parts()) segment.taken.addSeries(place, ranges);
    else segment.taken.addWhole(records, leftOut);
  }

  /** Number of unsettled series. */
  get count(): number {
    return this.#count;
  }

  /** Number of unsettled points. */
  get points(): number {
    return this.#left;
  }

  /** Whether points of this input are unsettled. */
  has(input: number): boolean {
    const at = lowerBound(this.#inputs, input);
    return this.#inputs[at] === input && this.#points[at] !== 0;
  }

  /** The unsettled series. */
  *parts(): Generator<SeriesPart> {
    for (let at = 0; at < this.#points.length; at++) if (this.#points[at] !== 0) yield this.#part(at);
  }

  /** Settles the points of these inputs. Returns their number. */
  settle(inputs: Uint32Array): number {
    const { records, bySeries, leftOut } = this.#cut;
    const { segment } = this;
    const before = this.#left;
    const series = this.#remove(inputs);
    const points = before - this.#left;
    segment.settledPoints += points;
    if (bySeries || this.#asWhole || this.#count > this.#inputs.length / 2)
      for (const at of series) {
        const { place, ranges } = this.#part(at);
        segment.settled.addSeries(place, ranges);
      }
    else {
      // Most series are settled: whole ranges with few gaps need less memory than many single series.
      this.#asWhole = true;
      segment.settled.addWhole(records, leftOut);
      for (const { place, ranges } of this.parts()) segment.settled.removeSeries(place, ranges);
    }
    return points;
  }

  /** As `settle`, after the segment was dropped. */
  settleDropped(inputs: Uint32Array): number {
    const before = this.#left;
    this.#remove(inputs);
    return before - this.#left;
  }

  release(): void {
    const { records, bySeries, leftOut } = this.#cut;
    const { taken, settled } = this.segment;
    if (bySeries || this.#asWhole) {
      for (const { place, ranges } of this.parts()) taken.removeSeries(place, ranges);
      return;
    }
    taken.removeWhole(records, leftOut);
    // `removeWhole` also removed the settled series, which stay taken.
    for (const [place, ranges] of settled.series) taken.addSeries(place, ranges);
  }

  /** Removes the series of these inputs. Returns the indices of those that were unsettled. */
  #remove(inputs: Uint32Array): Uint32Array {
    const removed = new Uint32Array(inputs.length);
    let count = 0;
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i]!;
      // Usually all series are settled at once, in this order.
      const at = this.#inputs[i] === input ? i : lowerBound(this.#inputs, input);
      if (this.#inputs[at] !== input || this.#points[at] === 0) continue;
      removed[count++] = at;
      this.#left -= this.#points[at]!;
      this.#points[at] = 0;
      this.#count--;
    }
    return removed.subarray(0, count);
  }

  #part(at: number): SeriesPart {
    const { records, leftOut } = this.#cut;
    const place = this.#places[at]!;
    const missing = leftOut.get(place);
    return { place, points: this.#points[at]!, ranges: missing ? records.minus(missing) : records };
  }
}

// Blocks that were leased when their segment was dropped. Their points are delivered if settled, lost if released.

/** Earliest and latest time of each series in a block, by place in the segment's dictionary. */
export type SeriesTimes = ReadonlyMap<number, { readonly from: number; readonly to: number }>;

interface DroppedBlock {
  readonly reason: LossReason;
  readonly lease: Lease;
  readonly times: SeriesTimes;
  readonly first: number;
  readonly end: number;
}

export class DroppedBlocks {
  readonly #counters: PointCounters;
  readonly #blocks = new Map<number, DroppedBlock>();

  constructor(counters: PointCounters) {
    this.#counters = counters;
  }

  get points(): number {
    let points = 0;
    for (const { lease } of this.#blocks.values()) points += lease.points;
    return points;
  }

  add(id: number, block: DroppedBlock): void {
    this.#blocks.set(id, block);
  }

  /** Counts points of a block as delivered or refused. Does nothing if the block is unknown. */
  settle(id: number, inputs: Uint32Array, refused: number): void {
    const lease = this.#blocks.get(id)?.lease;
    if (!lease) return;
    this.#counters.settle(lease.settleDropped(inputs), refused);
    if (lease.count === 0) this.#blocks.delete(id);
  }

  /** Counts the remaining points of a block as lost. Does nothing if the block is unknown. */
  release(id: number): void {
    const block = this.#blocks.get(id);
    if (!block) return;
    this.#blocks.delete(id);
    const loss = lossOf(block);
    this.#counters.losses.add(block.reason, loss);
    this.#counters.removed.lose(block.first, block.end, loss.points, block.reason);
    this.#counters.changed = true;
  }

  releaseAll(): void {
    for (const id of this.#blocks.keys()) this.release(id);
  }

  /** For the state file: the points that are lost if the process ends, and the removed ranges in that case. */
  state(): Pick<BufferState, "leased" | "removed"> {
    const removed = new RemovedRanges(this.#counters.removed.list());
    const leased = [...this.#blocks.values()].map((block) => {
      const loss = lossOf(block);
      removed.lose(block.first, block.end, loss.points, block.reason);
      return { reason: block.reason, ...loss };
    });
    return { leased, removed: removed.list() };
  }
}

function lossOf({ lease, times }: DroppedBlock) {
  let loss = joinedSpan(undefined, { points: lease.points, from: undefined, to: undefined });
  for (const { place } of lease.parts()) {
    const span = times.get(place);
    if (span) loss = joinedSpan(loss, { points: 0, ...span });
  }
  return loss;
}
