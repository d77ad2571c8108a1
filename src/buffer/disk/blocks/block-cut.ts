// Cuts a block out of one segment: the records or series that are free, decoded, sorted by series and time.
import type { Lane } from "../../../core/buffer.ts";
import { RangeSet } from "../accounts/range-set.ts";
import { copied } from "../files/bytes.ts";
import { readPoints } from "../format/columns.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";
import type { RecordBytes, SegmentReader } from "../segments/segment-reader.ts";

/** The part of a block that belongs to one series. */
export interface CutSeries {
  readonly place: number;
  /** Where its points lie. */
  readonly ranges: RangeSet;
  /** Where the last record of it ends, or begins when cutting from the newest; undefined: a record of it was left out since. */
  edge: number | undefined;
  /** How many records had been passed over when `edge` was set. */
  passed: number;
}

export interface BlockCut {
  /** Stretches of which the block holds every series but `leftOut`; empty when it holds series by themselves. */
  readonly whole: RangeSet;
  /** Series that are not wanted: where they lie in `whole`, by place. */
  readonly leftOut: ReadonlyMap<number, RangeSet>;
  readonly leftOutPoints: number;
  /** By place in the segment's dictionary; empty when the block holds every series. */
  readonly series: ReadonlyMap<number, CutSeries>;
  /** Places of series with points of late records. */
  readonly late: ReadonlySet<number>;
  readonly points: number;
  /** One entry a point. */
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

export interface CutOptions {
  readonly lane: Lane;
  readonly maxPoints: number;
  /** The block ends with the first record at which it has as many. */
  readonly enough: number;
  /** Whether the series at this place of the dictionary is wanted. Undefined: all are. */
  readonly wanted: ((place: number) => boolean) | undefined;
  /** Only few series are wanted, or names are lost: series are taken by themselves. */
  readonly bySeries: boolean;
  /** Whether the name of the series at this place is known. */
  readonly isNamed: (place: number) => boolean;
  /** Whether a record stays where it is for now. */
  readonly withheld: (record: number) => boolean;
  /** Called for records that cannot be read any more. */
  readonly onDamage: (record: number) => void;
}

/**
 * Undefined when nothing that is wanted is free. Records that hold nothing that is wanted are marked in `segment.taken` as
 * taken but for gaps, so that the next call passes over them without reading them.
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
    if (record && cutter.add(at, record)) continue;
    cutter.passOver();
    options.onDamage(at);
  }
  return cutter.result();
}

class Cutter {
  readonly #segment: Segment;
  readonly #index: SegmentIndex;
  readonly #options: CutOptions;
  readonly #whole = new RangeSet();
  readonly #series = new Map<number, CutSeries>();
  readonly #leftOut = new Map<number, RangeSet>();
  #leftOutPoints = 0;
  /** Where series that are wanted are free though `taken.whole` has the record. */
  readonly #openGaps: RangeSet;
  readonly #late = new Set<number>();
  #places = new Uint32Array(1_024);
  #times = new Float64Array(1_024);
  #values = new Float64Array(1_024);
  #points = 0;
  #passed = 0;
  /** Series are taken by themselves. Whole records cost nothing to remember. */
  #bySeries = false;
  isFull = false;

  constructor(segment: Segment, index: SegmentIndex, options: CutOptions) {
    this.#segment = segment;
    this.#index = index;
    this.#options = options;
    this.#openGaps = segment.taken.gapsOf(options.wanted ?? (() => true));
  }

  /** Whether all of the record that is wanted is taken, or none of it may be. */
  passesOver(record: number): boolean {
    const from = this.#index.sequences[record]!;
    const to = from + this.#index.points[record]!;
    const taken = this.#segment.taken.whole.covers(from, to) && !this.#openGaps.touches(from, to);
    const passes = taken || this.#options.withheld(record);
    if (passes) this.passOver();
    return passes;
  }

  passOver(): void {
    this.#passed++;
  }

  /** False when the record cannot be understood, though its checksum is right; nothing of it is taken then. */
  add(record: number, content: RecordBytes): boolean {
    const before = this.#points;
    try {
      this.#add(record, content);
      if (this.#index.late[record]) for (let i = before; i < this.#points; i++) this.#late.add(this.#places[i]!);
      return true;
    } catch {
      const from = this.#index.sequences[record]!;
      const to = from + this.#index.points[record]!;
      this.#points = before;
      for (const [place, series] of this.#series) {
        series.ranges.remove(from, to);
        series.edge = undefined;
        if (series.ranges.isEmpty) this.#series.delete(place);
      }
      return false;
    }
  }

  #add(record: number, content: RecordBytes): void {
    const points = this.#index.points[record]!;
    const sequence = this.#index.sequences[record]!;
    const end = sequence + points;
    const { maxPoints, enough } = this.#options;
    const isFirst = this.#points === 0;
    // Also when the first record alone is too much: some of its series, then.
    const bySeries =
      this.#options.bySeries || this.#segment.taken.mayTouchSeries(sequence, end) || (isFirst && points > maxPoints);
    if (isFirst) this.#bySeries = bySeries;
    else if (bySeries !== this.#bySeries || (!bySeries && this.#points + points > maxPoints)) {
      this.isFull = true;
      return;
    }
    if (this.#points + points > this.#times.length) this.#grow(this.#points + points);
    if (bySeries) this.#addSeries(content, sequence, end);
    else this.#addWhole(content, sequence, end);
    if (this.#points >= Math.min(maxPoints, enough)) this.isFull = true;
  }

  /** Takes all of a record but the series that are not wanted. */
  #addWhole({ bytes, at, header }: RecordBytes, sequence: number, end: number): void {
    const { wanted } = this.#options;
    const before = this.#points;
    const left = new Set<number>();
    let leftPoints = 0;
    readPoints(bytes, at, header, (place, time, value) => {
      if (wanted === undefined || wanted(place)) this.#push(place, time, value);
      else {
        left.add(place);
        leftPoints++;
      }
    });
    if (this.#points - before + leftPoints !== end - sequence)
      throw new RangeError("other points than the header says");
    if (this.#points === before) {
      this.#markUnwanted(left, sequence, end);
      return;
    }
    this.#whole.add(sequence, end);
    this.#leftOutPoints += leftPoints;
    for (const place of left) {
      const ranges = this.#leftOut.get(place) ?? new RangeSet();
      ranges.add(sequence, end);
      this.#leftOut.set(place, ranges);
    }
  }

  /** Nothing of the record is wanted, and of these series it holds free points. */
  #markUnwanted(places: ReadonlySet<number>, sequence: number, end: number): void {
    const { isNamed } = this.#options;
    // What has no name is counted as lost once all else is settled.
    for (const place of places) if (!isNamed(place)) return;
    const { taken } = this.#segment;
    taken.addWhole(sequence, end);
    for (const place of places) taken.removeSeries(place, sequence, end);
  }

  result(): BlockCut | undefined {
    if (this.#points === 0) return undefined;
    return {
      whole: this.#whole,
      leftOut: this.#leftOut,
      leftOutPoints: this.#leftOutPoints,
      series: this.#series,
      late: this.#late,
      points: this.#points,
      places: this.#places,
      times: this.#times,
      values: this.#values,
    };
  }

  /** Takes the series of a record that are free and wanted, as many as there is room for. */
  #addSeries({ bytes, at, header }: RecordBytes, sequence: number, end: number): void {
    const { maxPoints, wanted } = this.#options;
    const before = this.#points;
    const left = new Set<number>();
    let current = -1;
    let start = before;
    let free = false;
    const closeSeries = () => {
      if (!free || this.#points === start) return;
      // A series that does not fit any more is left for the next block, unless it is the only one.
      if (this.#points > maxPoints && start > 0) {
        this.#points = start;
        this.isFull = true;
        return;
      }
      this.#noteSeries(current, sequence, end);
    };
    readPoints(bytes, at, header, (place, time, value) => {
      if (place !== current) {
        closeSeries();
        current = place;
        start = this.#points;
        const isWanted = wanted === undefined || wanted(place);
        const isFree = !this.#segment.taken.covers(place, sequence, end);
        free = !this.isFull && isWanted && isFree;
        if (isFree && !isWanted) left.add(place);
      }
      if (free) this.#push(place, time, value);
      else this.#breakSeries(place);
    });
    closeSeries();
    if (this.#points === before && !this.isFull && !this.#options.bySeries) this.#markUnwanted(left, sequence, end);
  }

  /** One stretch goes on over records in between that hold nothing of the series: few stretches are quick to remember. */
  #noteSeries(place: number, from: number, to: number): void {
    const series = this.#series.get(place) ?? {
      place,
      ranges: new RangeSet(),
      edge: undefined,
      passed: this.#passed,
    };
    this.#series.set(place, series);
    const edge = series.passed === this.#passed ? series.edge : undefined;
    const forward = this.#options.lane === "backlog";
    if (forward) series.ranges.add(edge ?? from, to);
    else series.ranges.add(from, edge ?? to);
    series.edge = forward ? to : from;
    series.passed = this.#passed;
  }

  #breakSeries(place: number): void {
    const series = this.#series.get(place);
    if (series) series.edge = undefined;
  }

  #push(place: number, time: number, value: number): void {
    const at = this.#points++;
    this.#places[at] = place;
    this.#times[at] = time;
    this.#values[at] = value;
  }

  #grow(points: number): void {
    const size = 2 ** Math.ceil(Math.log2(points));
    this.#places = copied(this.#places, new Uint32Array(size));
    this.#times = copied(this.#times, new Float64Array(size));
    this.#values = copied(this.#values, new Float64Array(size));
  }
}
