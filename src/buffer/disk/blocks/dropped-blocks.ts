// Blocks that were leased when their segment was dropped. Their points are in a request, or waiting for one, so whether they
// are lost shows when the block comes back: what is settled was delivered, what is released is gone.
import type { Accounts } from "../accounts/accounts.ts";
import type { LeasedLoss } from "../accounts/buffer-state.ts";
import type { LossReason, Stretch } from "../accounts/loss-ledger.ts";
import { type RemovedRange, RemovedRanges } from "../accounts/removed-ranges.ts";
import { readPoints } from "../format/columns.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";
import type { SegmentReader } from "../segments/segment-reader.ts";
import type { SeriesOut } from "./series-out.ts";

/** Earliest and latest time of the points that a block holds of a series, by its place in the segment's dictionary. */
export type SeriesTimes = ReadonlyMap<number, { readonly from: number; readonly to: number }>;

interface DroppedBlock {
  readonly reason: LossReason;
  readonly series: SeriesOut;
  readonly times: SeriesTimes;
  /** Sequence numbers of its segment. */
  readonly first: number;
  readonly end: number;
}

export class DroppedBlocks {
  readonly #accounts: Accounts;
  readonly #blocks = new Map<number, DroppedBlock>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** Points that are still leased. */
  get points(): number {
    let points = 0;
    for (const { series } of this.#blocks.values()) points += series.points;
    return points;
  }

  add(id: number, block: DroppedBlock): void {
    this.#blocks.set(id, block);
  }

  /** Counts what the service has of a block, or refused. False: it is none of these. */
  settle(id: number, inputs: readonly number[], refused: number): boolean {
    const block = this.#blocks.get(id);
    if (!block) return false;
    const before = block.series.points;
    block.series.settle(inputs);
    const points = before - block.series.points;
    this.#accounts.refused += Math.min(refused, points);
    this.#accounts.settled += points - Math.min(refused, points);
    if (block.series.count === 0) this.#blocks.delete(id);
    return true;
  }

  /** What is left of a block is lost. False: it is none of these. */
  release(id: number): boolean {
    const block = this.#blocks.get(id);
    if (!block) return false;
    this.#blocks.delete(id);
    const loss = lossOf(block);
    this.#accounts.losses.add(block.reason, loss);
    this.#accounts.removed.lose(block.first, block.end, loss.points, block.reason);
    return true;
  }

  releaseAll(): void {
    for (const id of this.#blocks.keys()) this.release(id);
  }

  /** What would be lost with the process, for the state, and what is removed if it is. */
  state(): { readonly leased: readonly LeasedLoss[]; readonly removed: readonly RemovedRange[] } {
    const removed = new RemovedRanges(this.#accounts.removed.list());
    const leased = [...this.#blocks.values()].map((block) => {
      const loss = lossOf(block);
      removed.lose(block.first, block.end, loss.points, block.reason);
      return { reason: block.reason, ...loss };
    });
    return { leased, removed: removed.list() };
  }
}

function lossOf({ series, times }: DroppedBlock) {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { place } of series.parts()) {
    from = Math.min(from, times.get(place)?.from ?? from);
    to = Math.max(to, times.get(place)?.to ?? to);
  }
  const isKnown = Number.isFinite(from) && Number.isFinite(to);
  return { points: series.points, from: isKnown ? from : undefined, to: isKnown ? to : undefined };
}

// What is lost with a segment that is dropped: which of its points were neither settled nor leased, and of which times. Reads
// the segment only where some of it was settled or leased.

/** More than that of one segment are joined where they are closest to each other. */
const mostStretches = 8;

export interface SegmentLoss {
  /** In the order of the log. */
  readonly stretches: readonly Stretch[];
  /** By block. */
  readonly leased: ReadonlyMap<number, SeriesTimes>;
}

/** All of it, where nothing can be read or nothing was settled and leased. */
export function wholeLoss(segment: Segment, leasedPoints: number): SegmentLoss {
  const { earliest, latest, first, endSequence } = segment;
  const points = segment.unsettledPoints - leasedPoints;
  const isWhole = points === segment.points;
  const place = isWhole ? { first, end: endSequence } : {};
  return { stretches: [{ points, from: earliest, to: latest, ...place }], leased: new Map() };
}

/** Throws what the disk throws. `blocks`: those that are leased from the segment. */
export function segmentLoss(
  segment: Segment,
  index: SegmentIndex,
  reader: SegmentReader,
  blocks: ReadonlyMap<number, SeriesOut>,
): SegmentLoss {
  const { settled, taken } = segment;
  const leases = [...blocks].map(([id, series]) => new Lease(id, series));
  const stretches: OpenStretch[] = [];
  let current: OpenStretch | undefined;
  let left = segment.unsettledPoints;
  for (let i = 0; i < index.sequences.length; i++) {
    const first = index.sequences[i]!;
    const end = first + index.points[i]!;
    const lost = { points: 0, from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
    if (!taken.whole.touches(first, end) && !taken.mayTouchSeries(first, end)) {
      lost.points = end - first;
      lost.from = index.earliest[i]!;
      lost.to = index.latest[i]!;
    } else if (!settled.coversAll(first, end)) {
      const record = reader.record(i);
      if (record)
        readPoints(record.bytes, record.at, record.header, (place, time) => {
          if (settled.covers(place, first, end)) return;
          if (taken.covers(place, first, end)) {
            leases.find((lease) => lease.holds(place, first, end))?.note(place, time);
            left--;
            return;
          }
          lost.points++;
          lost.from = Math.min(lost.from, time);
          lost.to = Math.max(lost.to, time);
        });
    }
    left -= lost.points;
    if (lost.points === 0) current = undefined;
    else if (current && current.end === first) {
      current.points += lost.points;
      current.from = Math.min(current.from, lost.from);
      current.to = Math.max(current.to, lost.to);
      current.end = end;
    } else {
      current = { ...lost, first, end };
      stretches.push(current);
    }
  }
  const rest: Stretch[] = left > 0 ? [{ points: left, from: segment.earliest, to: segment.latest }] : [];
  const leased = new Map(leases.map(({ id, times }) => [id, times]));
  return { stretches: [...fewer(stretches), ...rest], leased };
}

interface OpenStretch {
  points: number;
  from: number;
  to: number;
  first: number;
  end: number;
}

/** Where the points of a leased block lie. */
class Lease {
  readonly id: number;
  readonly times = new Map<number, { from: number; to: number }>();
  readonly #bounds = new Map<number, ArrayLike<number>>();

  constructor(id: number, series: SeriesOut) {
    this.id = id;
    for (const { place, bounds } of series.parts()) this.#bounds.set(place, bounds);
  }

  holds(place: number, first: number, end: number): boolean {
    const bounds = this.#bounds.get(place) ?? [];
    for (let i = 0; i < bounds.length; i += 2) if (bounds[i]! <= first && bounds[i + 1]! >= end) return true;
    return false;
  }

  note(place: number, time: number): void {
    const times = this.times.get(place);
    this.times.set(place, { from: Math.min(times?.from ?? time, time), to: Math.max(times?.to ?? time, time) });
  }
}

function fewer(stretches: OpenStretch[]): Stretch[] {
  const kept = stretches.map((stretch) => ({ ...stretch }));
  while (kept.length > mostStretches) {
    let closest = 1;
    const gap = (i: number) => kept[i]!.first - kept[i - 1]!.end;
    for (let i = 2; i < kept.length; i++) if (gap(i) < gap(closest)) closest = i;
    const [a, b] = kept.slice(closest - 1, closest + 1) as [OpenStretch, OpenStretch];
    const [from, to] = [Math.min(a.from, b.from), Math.max(a.to, b.to)];
    kept.splice(closest - 1, 2, { points: a.points + b.points, from, to, first: a.first, end: b.end });
  }
  return kept;
}
