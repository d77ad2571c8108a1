// Cuts a block out of one segment: decodes its free records or series, sorted by series and time.
import type { Lane } from "../../../core/buffer.ts";
import { RangeSet } from "../counters/range-set.ts";
import { copied } from "../files/bytes.ts";
import { readPoints } from "../format/columns.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";
import type { RecordBytes, SegmentReader } from "../segments/segment-reader.ts";

/** The content of a block: whole records, or some series of whole records. */
export interface BlockCut {
  readonly records: RangeSet;
  /** False: every series of the records except `leftOut`. True: only the series that the block has points of. */
  readonly bySeries: boolean;
  /** Series missing from some records: place in the segment's dictionary, and the ranges where it is missing. */
  readonly leftOut: ReadonlyMap<number, RangeSet>;
  readonly leftOutPoints: number;
  /** Places of series with late points. */
  readonly late: ReadonlySet<number>;
  readonly points: number;
  /** These three columns have one entry per point. */
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

export interface CutOptions {
  readonly lane: Lane;
  readonly maxPoints: number;
  /** The block ends with the first record at which it has this many points. */
  readonly enough: number;
  /** Whether the series at this place of the dictionary is requested. Undefined: all are. */
  readonly wanted: ((place: number) => boolean) | undefined;
  /** Select single series instead of whole records: few are requested, or names are damaged. */
  readonly bySeries: boolean;
  readonly isNamed: (place: number) => boolean;
  /** Whether a record must not be leased yet. */
  readonly withheld: (record: number) => boolean;
  readonly onDamage: (record: number) => void;
}

/**
 * Undefined if no requested point is free. A record without requested points is marked in `segment.taken` as covered,
 * with gaps for its free series. The next call then skips it without reading it.
 */
export function cutBlock(
  segment: Segment,
  index: SegmentIndex,
  reader: SegmentReader,
  options: CutOptions,
): BlockCut | undefined {
  const cutter = new Cutter(segment, index, options);
  const count = index.sequences.length;
  for (let i = 0; i < count && !cutter.isFull; i++) {
    const at = options.lane === "backlog" ? i : count - 1 - i;
    if (cutter.passesOver(at)) continue;
    const record = reader.record(at);
    if (!record || !cutter.add(at, record)) options.onDamage(at);
  }
  return cutter.points === 0 ? undefined : cutter;
}

class Cutter implements BlockCut {
  readonly #segment: Segment;
  readonly #index: SegmentIndex;
  readonly #options: CutOptions;
  /** Series in the block, if it holds single series. */
  readonly #held = new Set<number>();
  /** Ranges in which a requested series is free although `taken.whole` covers the record. */
  readonly #openGaps: RangeSet;
  readonly records = new RangeSet();
  readonly leftOut = new Map<number, RangeSet>();
  readonly late = new Set<number>();
  leftOutPoints = 0;
  bySeries = false;
  places = new Uint32Array(1_024);
  times = new Float64Array(1_024);
  values = new Float64Array(1_024);
  points = 0;
  isFull = false;

  constructor(segment: Segment, index: SegmentIndex, options: CutOptions) {
    this.#segment = segment;
    this.#index = index;
    this.#options = options;
    this.#openGaps = segment.taken.gapsOf(options.wanted ?? (() => true));
  }

  /** Whether to skip the record: all its requested points are taken, or it is withheld. */
  passesOver(record: number): boolean {
    const [from, to] = this.#index.rangeOf(record);
    const taken = this.#segment.taken.whole.covers(from, to) && !this.#openGaps.touches(from, to);
    return taken || this.#options.withheld(record);
  }

  /** Adds the free points of a record. False: its payload cannot be parsed, and nothing is added. */
  add(record: number, content: RecordBytes): boolean {
    const [from, to] = this.#index.rangeOf(record);
    const points = to - from;
    const before = this.points;
    const { maxPoints, enough } = this.#options;
    // A first record above `maxPoints` is also split by series.
    const bySeries =
      this.#options.bySeries || this.#segment.taken.mayTouchSeries(from, to) || (before === 0 && points > maxPoints);
    if (before === 0) this.bySeries = bySeries;
    else if (bySeries !== this.bySeries || (!bySeries && before + points > maxPoints)) {
      this.isFull = true;
      return true;
    }
    if (before + points > this.times.length) this.#grow(before + points);
    try {
      this.#addSeries(content, from, to);
    } catch {
      this.points = before;
      return false;
    }
    if (this.#index.late[record]) for (let i = before; i < this.points; i++) this.late.add(this.places[i]!);
    if (this.points >= Math.min(maxPoints, enough)) this.isFull = true;
    return true;
  }

  /** Adds the free, requested series of a record. If single series are selected, stops at `maxPoints`. */
  #addSeries({ bytes, at, header }: RecordBytes, from: number, to: number): void {
    const { maxPoints, wanted, bySeries } = this.#options;
    const { taken } = this.#segment;
    const before = this.points;
    const left = new Set<number>();
    const unwanted = new Set<number>();
    const held: number[] = [];
    let seen = 0;
    readPoints(bytes, at, header, (place, times, values) => {
      seen += times.length;
      const isWanted = wanted === undefined || wanted(place);
      const isFree = !this.bySeries || !taken.covers(place, from, to);
      let takes = isWanted && isFree && !this.isFull;
      // A series that exceeds `maxPoints` is left for the next block, unless it is the first.
      if (takes && this.bySeries && this.points > 0 && this.points + times.length > maxPoints) {
        this.isFull = true;
        takes = false;
      }
      if (takes) {
        this.#append(place, times, values);
        if (this.bySeries && !this.#held.has(place)) held.push(place);
      }
      // A single series counts as left out only in records after the first one that the block takes it from.
      else if (!this.bySeries || this.#held.has(place)) left.add(place);
      if (isFree && !isWanted) unwanted.add(place);
    });
    if (seen !== to - from) throw new RangeError("other points than the header says");
    if (this.points === before) {
      if (!this.isFull && !bySeries) this.#markUnwanted(unwanted, new RangeSet([from, to]));
      return;
    }
    for (const place of held) {
      this.#held.add(place);
      if (!this.records.isEmpty) this.leftOut.set(place, new RangeSet(this.records.bounds));
    }
    this.records.add(from, to);
    this.leftOutPoints += seen - (this.points - before);
    for (const place of left) {
      const ranges = this.leftOut.get(place) ?? new RangeSet();
      ranges.add(from, to);
      this.leftOut.set(place, ranges);
    }
  }

  /** The record has no requested points. Marks it as taken, with gaps for `places`, whose points are free. */
  #markUnwanted(places: ReadonlySet<number>, record: RangeSet): void {
    const { isNamed } = this.#options;
    // Series with damaged names stay free: they count as lost once all other points of the segment are settled.
    for (const place of places) if (!isNamed(place)) return;
    const { taken } = this.#segment;
    taken.addWhole(record);
    for (const place of places) taken.removeSeries(place, record);
  }

  #append(place: number, times: Float64Array, values: Float64Array): void {
    this.places.fill(place, this.points, this.points + times.length);
    this.times.set(times, this.points);
    this.values.set(values, this.points);
    this.points += times.length;
  }

  #grow(points: number): void {
    const size = 2 ** Math.ceil(Math.log2(points));
    this.places = copied(this.places, new Uint32Array(size));
    this.times = copied(this.times, new Float64Array(size));
    this.values = copied(this.values, new Float64Array(size));
  }
}
