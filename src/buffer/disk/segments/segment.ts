// One segment of the running buffer: its file, its range, and its settled and leased points.
import { Coverage } from "../accounts/coverage.ts";
import { RangeSet } from "../accounts/range-set.ts";
import type { SegmentHeader } from "../format/segment-header.ts";
import type { SegmentIndex } from "../format/segment-index.ts";

export class Segment {
  readonly name: string;
  readonly path: string;
  header: SegmentHeader;
  /** False: it could not be read, and most of `header` is a guess. */
  headerKnown = true;
  /** Sequence number after its last point. */
  endSequence: number;
  /** Bytes in use. */
  bytes: number;
  /** Times of its points, microseconds; undefined while it holds none. */
  earliest: number | undefined;
  latest: number | undefined;
  /** When the last point came: wall time in microseconds, and milliseconds that the buffer had been open in its life. */
  lastWall: number;
  lastUptime: number;
  /** Sealed ones are never written to again. */
  sealed = false;
  /** The file has no totals at its end, or bytes behind it that do not count. */
  needsMending = false;
  /** Of the newest ones and of those read last. */
  index: SegmentIndex | undefined;
  /** Settled, dropped or lost: these points will not be leased again. */
  readonly settled = new Coverage();
  /** The same and the points that are leased now. */
  readonly taken = new Coverage();
  /** Points settled by single series beyond `settled.whole`, less those in its gaps. */
  settledBySeries = 0;
  /** Numbers of the inputs by place in the dictionary, while `taken` has gaps: the index may not be in memory. */
  numbers: readonly number[] | undefined;
  /** Leased blocks, neither settled nor released. */
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

  /** The file holds these records now: what was not settled of the old ones. */
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

  /** Everything up to the end is spoken for, and counted by the caller. */
  settleAll(): void {
    this.writeOff(this.first, this.endSequence);
    this.settledBySeries = 0;
  }

  /** These points are spoken for, and counted by the caller. */
  writeOff(from: number, to: number): void {
    for (const coverage of [this.settled, this.taken]) coverage.addWhole(new RangeSet([from, to]));
  }

  /** Where everything up to the last settled point is settled, one whole stretch says what single series said. */
  joinSettled(): void {
    const { settled, first } = this;
    if (!settled.hasSeries || settled.whole.count + this.settledBySeries !== settled.end - first) return;
    this.writeOff(first, settled.end);
    this.settledBySeries = 0;
  }

  /** Counts a record that was appended. */
  extend(points: number, from: number, to: number): void {
    this.endSequence += points;
    this.earliest = Math.min(this.earliest ?? from, from);
    this.latest = Math.max(this.latest ?? to, to);
  }

  /** Earliest time of what is not settled; of the records that hold any of it, and where they are not known, of the segment. */
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
