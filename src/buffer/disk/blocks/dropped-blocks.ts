// Blocks that were leased when their segment was dropped. Their points are delivered if settled, lost if released.

import type { LeasedLoss } from "../counters/buffer-state.ts";
import {
  joinedSpan,
  type LossReason,
  type LostRange,
  type LostSpan,
  type PointCounters,
} from "../counters/point-counters.ts";
import { type RemovedRange, RemovedRanges } from "../counters/removed-ranges.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";
import type { SegmentReader } from "../segments/segment-reader.ts";
import type { Lease } from "./lease.ts";

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
  state(): { readonly leased: readonly LeasedLoss[]; readonly removed: readonly RemovedRange[] } {
    const removed = new RemovedRanges(this.#counters.removed.list());
    const leased = [...this.#blocks.values()].map((block) => {
      const loss = lossOf(block);
      removed.lose(block.first, block.end, loss.points, block.reason);
      return { reason: block.reason, ...loss };
    });
    return { leased, removed: removed.list() };
  }
}

function lossOf({ lease, times }: DroppedBlock): LostSpan {
  let loss: LostSpan = { points: lease.points, from: undefined, to: undefined };
  for (const { place } of lease.parts()) {
    const span = times.get(place);
    if (span) loss = joinedSpan(loss, { points: 0, ...span });
  }
  return loss;
}

// The loss when a segment is dropped: the number and times of its points that are neither settled nor leased. Reads the
// segment only if some of its points were settled or leased.

/** Maximum ranges reported per segment. Beyond it, ranges with the smallest gap between them are joined. */
const mostRanges = 8;

export interface SegmentLoss {
  readonly ranges: readonly LostRange[];
  readonly leased: ReadonlyMap<number, SeriesTimes>;
}

/** A single range, if the segment cannot be read or none of it was settled or leased. */
export function wholeLoss(segment: Segment, leasedPoints: number): SegmentLoss {
  const { earliest, latest, first, endSequence } = segment;
  const points = segment.unsettledPoints - leasedPoints;
  const isWhole = points === segment.points;
  const place = isWhole ? { first, end: endSequence } : {};
  return { ranges: [{ points, from: earliest, to: latest, ...place }], leased: new Map() };
}

export function segmentLoss(
  segment: Segment,
  index: SegmentIndex,
  reader: SegmentReader,
  blocks: ReadonlyMap<number, Lease>,
): SegmentLoss {
  const { settled, taken } = segment;
  const leases = Array.from(blocks, ([id, lease]) => ({
    id,
    ranges: new Map(Array.from(lease.parts(), (part) => [part.place, part.ranges])),
    times: new Map<number, { from: number; to: number }>(),
  }));
  const ranges: PlacedRange[] = [];
  let left = segment.unsettledPoints;
  for (let i = 0; i < index.sequences.length; i++) {
    const [first, end] = index.rangeOf(i);
    const lost = { points: 0, from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY, first, end };
    if (!taken.whole.touches(first, end) && !taken.mayTouchSeries(first, end)) {
      lost.points = end - first;
      lost.from = index.earliest[i]!;
      lost.to = index.latest[i]!;
    } else if (!settled.coversAll(first, end))
      reader.visit(i, (place, times) => {
        if (settled.covers(place, first, end)) return;
        const [from, to] = [times[0]!, times.at(-1)!];
        if (!taken.covers(place, first, end)) {
          lost.points += times.length;
          extend(lost, from, to);
          return;
        }
        left -= times.length;
        const spans = leases.find(({ ranges }) => ranges.get(place)?.covers(first, end))?.times;
        const span = spans?.get(place);
        if (span) extend(span, from, to);
        else spans?.set(place, { from, to });
      });
    if (lost.points === 0) continue;
    left -= lost.points;
    const last = ranges.at(-1);
    if (last?.end === first) ranges.push(together(ranges.pop()!, lost));
    else ranges.push(lost);
  }
  const rest: LostRange[] = left > 0 ? [{ points: left, from: segment.earliest, to: segment.latest }] : [];
  return { ranges: [...fewer(ranges), ...rest], leased: new Map(leases.map(({ id, times }) => [id, times])) };
}

type PlacedRange = LostRange & { readonly first: number; readonly end: number };

function extend(span: { from: number; to: number }, from: number, to: number): void {
  span.from = Math.min(span.from, from);
  span.to = Math.max(span.to, to);
}

const together = (a: PlacedRange, b: PlacedRange) => ({ ...joinedSpan(a, b), first: a.first, end: b.end });

function fewer(ranges: readonly PlacedRange[]): PlacedRange[] {
  const kept = [...ranges];
  while (kept.length > mostRanges) {
    let closest = 1;
    const gap = (i: number) => kept[i]!.first - kept[i - 1]!.end;
    for (let i = 2; i < kept.length; i++) if (gap(i) < gap(closest)) closest = i;
    kept.splice(closest - 1, 2, together(kept[closest - 1]!, kept[closest]!));
  }
  return kept;
}
