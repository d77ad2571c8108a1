// Cuts a block out of one segment: decodes its free records or series, and arranges their points in columns, sorted by
// series and time.
import type { Lane } from "../../../core/buffer.ts";
import { RangeSet } from "../counters/ranges.ts";
import { copied } from "../files/bytes.ts";
import type { SeriesSorter } from "../format/columns.ts";
import { readPoints } from "../format/record.ts";
import type { SegmentIndex } from "../format/segment-file.ts";
import type { RecordBytes, Segment, SegmentReader } from "../segments/segment.ts";

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

/** The content of a block: whole records, or some series of whole records. */
export interface BlockCut {
  readonly records: RangeSet;
  /** False: every series of the records except `leftOut`. True: only the series that the block has points of. */
  readonly bySeries: boolean;
  /** Series missing from some records: place in the segment's dictionary, and the ranges where it is missing. */
  readonly leftOut: ReadonlyMap<number, RangeSet>;
  /** Places of series with late points. */
  readonly late: ReadonlySet<number>;
  readonly points: number;
  /** These three columns have one entry per point. */
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

interface CutOptions {
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

interface LaidOut {
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
