// One segment of the open buffer: its file, its sequence numbers, and its settled and leased points.
import { Coverage } from "../counters/coverage.ts";
import { RangeSet } from "../counters/range-set.ts";
import type { SegmentHeader } from "../format/segment-header.ts";
import type { SegmentIndex } from "../format/segment-index.ts";

export class Segment {
  readonly name: string;
  readonly path: string;
  header: SegmentHeader;
  /** False: the header is damaged, and most of `header` is a guess. */
  headerKnown = true;
  endSequence: number;
  bytes: number;
  /** Earliest and latest time of its points, microseconds. Undefined: unknown, or there are no points. */
  earliest: number | undefined;
  latest: number | undefined;
  /** When the last point was appended: wall time in microseconds, and total uptime of the buffer in milliseconds. */
  lastWall: number;
  lastUptime: number;
  sealed = false;
  /** The file lacks its seal, or has bytes after the last intact record. */
  needsRepair = false;
  /** Kept for the newest segments and those read last. */
  index: SegmentIndex | undefined;
  /** Settled, dropped or lost points, which will not be leased again. */
  readonly settled = new Coverage();
  /** All points in `settled`, and the leased points. */
  readonly taken = new Coverage();
  /** Points settled by single series outside of `settled.whole`, minus those in its gaps. */
  settledBySeries = 0;
  /** Input numbers by place in the dictionary, kept while `isTaken` may need them without the index in memory. */
  numbers: readonly number[] | undefined;
  blocksOut = 0;

  constructor(name: string, path: string, header: SegmentHeader) {
    this.name = name;
    this.path = path;
    this.header = header;
    this.endSequence = header.first;
    this.bytes = 0;
    this.lastWall = header.created;
    this.lastUptime = 0;
  }

  get first(): number {
    return this.header.first;
  }

  get points(): number {
    return this.endSequence - this.header.first;
  }

  get unsettledPoints(): number {
    return this.points - this.settled.whole.count - this.settledBySeries;
  }

  /** The compactor has replaced the file: it now contains only the points that were unsettled. */
  replace(header: SegmentHeader, index: SegmentIndex): void {
    this.header = header;
    this.index = index;
    this.endSequence = index.endSequence;
    this.bytes = index.endOffset;
    this.earliest = index.earliestTime;
    this.latest = index.latestTime;
    this.settled.clear();
    this.taken.clear();
    this.numbers = undefined;
    this.settledBySeries = 0;
  }

  /** Marks all points as settled. The caller counts them. */
  settleAll(): void {
    this.writeOff(this.first, this.endSequence);
    this.settledBySeries = 0;
  }

  /** Marks these points as settled. The caller counts them. */
  writeOff(from: number, to: number): void {
    for (const coverage of [this.settled, this.taken]) coverage.addWhole(new RangeSet([from, to]));
  }

  /** Replaces series by one whole range if all points up to the last settled one are settled. */
  joinSettled(): void {
    const { settled, first } = this;
    if (!settled.hasSeries || settled.whole.count + this.settledBySeries !== settled.end - first) return;
    this.writeOff(first, settled.end);
    this.settledBySeries = 0;
  }

  extend(points: number, from: number, to: number): void {
    this.endSequence += points;
    this.earliest = Math.min(this.earliest ?? from, from);
    this.latest = Math.max(this.latest ?? to, to);
  }

  /** Earliest time of the records with unsettled points; without an index, of the whole segment. */
  oldestUnsettled(): number | undefined {
    if (this.unsettledPoints === 0) return undefined;
    const { index, settled } = this;
    if (!index || settled.whole.isEmpty) return this.earliest;
    let oldest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < index.sequences.length; i++)
      if (index.earliest[i]! < oldest && !settled.coversAll(...index.rangeOf(i))) oldest = index.earliest[i]!;
    return Number.isFinite(oldest) ? oldest : this.earliest;
  }
}
