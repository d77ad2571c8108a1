// Cuts a block out of one segment: the records or series that are free, decoded, sorted by series and time.
import type { Lane } from "../../core/buffer.ts";
import { readPoints } from "./payload.ts";
import { RangeSet } from "./range-set.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndex } from "./segment-index.ts";
import type { RecordBytes, SegmentReader } from "./segment-reader.ts";

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

export interface Cut {
  /** Stretches of which the block holds every series; empty when it holds series by themselves. */
  readonly whole: RangeSet;
  /** By place in the segment's dictionary; empty when the block holds every series. */
  readonly series: ReadonlyMap<number, CutSeries>;
  readonly points: number;
  /** One entry a point. */
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

export interface CutOptions {
  readonly lane: Lane;
  readonly maxPoints: number;
  /** Whether the series at this place of the dictionary is wanted. Undefined: all are. */
  readonly wanted: ((place: number) => boolean) | undefined;
  /** Called for records that cannot be read any more. */
  readonly onDamage: (record: number) => void;
}

/** Undefined when nothing in the segment is free. */
export function cutBlock(
  segment: Segment,
  index: SegmentIndex,
  reader: SegmentReader,
  options: CutOptions,
): Cut | undefined {
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
  }

  /** Whether all of the record is taken. */
  passesOver(record: number): boolean {
    const from = this.#index.sequences[record]!;
    const taken = this.#segment.taken.whole.covers(from, from + this.#index.points[record]!);
    if (taken) this.passOver();
    return taken;
  }

  passOver(): void {
    this.#passed++;
  }

  /** False when the record cannot be understood, though its checksum is right; nothing of it is taken then. */
  add(record: number, content: RecordBytes): boolean {
    const before = this.#points;
    try {
      this.#add(record, content);
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
    const { maxPoints, wanted } = this.#options;
    const isFirst = this.#points === 0;
    // Also when the first record alone is too much: some of its series, then.
    const bySeries =
      wanted !== undefined || this.#segment.taken.mayTouchSeries(sequence, end) || (isFirst && points > maxPoints);
    if (isFirst) this.#bySeries = bySeries;
    else if (bySeries !== this.#bySeries || (!bySeries && this.#points + points > maxPoints)) {
      this.isFull = true;
      return;
    }
    if (this.#points + points > this.#times.length) this.#grow(this.#points + points);
    if (bySeries) {
      this.#addSeries(content, sequence, end);
      return;
    }
    const before = this.#points;
    readPoints(content.bytes, content.at, content.header, (place, time, value) => this.#push(place, time, value));
    if (this.#points - before !== points) throw new RangeError("other points than the header says");
    this.#whole.add(sequence, end);
    if (this.#points === maxPoints) this.isFull = true;
  }

  result(): Cut | undefined {
    if (this.#points === 0) return undefined;
    return {
      whole: this.#whole,
      series: this.#series,
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
        free =
          !this.isFull && (wanted === undefined || wanted(place)) && !this.#segment.taken.covers(place, sequence, end);
      }
      if (free) this.#push(place, time, value);
      else this.#breakSeries(place);
    });
    closeSeries();
    if (this.#points >= maxPoints) this.isFull = true;
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
    const [places, times, values] = [new Uint32Array(size), new Float64Array(size), new Float64Array(size)];
    places.set(this.#places.subarray(0, this.#points));
    times.set(this.#times.subarray(0, this.#points));
    values.set(this.#values.subarray(0, this.#points));
    this.#places = places;
    this.#times = times;
    this.#values = values;
  }
}
