// Which points of one segment are settled, or leased: whole stretches of the log, less gaps of single series in them, and
// stretches of single series beside them. Both are kept small: of 10,000 series of which two wait, only the gaps of those
// two are remembered.
import { RangeSet } from "./range-set.ts";

export interface SeriesState {
  readonly place: number;
  readonly bounds: readonly number[];
}

/** What of a segment is settled, as the state on disk has it: begin and end of each stretch. */
export interface SettledState {
  readonly whole: readonly number[];
  /** Series beyond `whole`. */
  readonly series: readonly SeriesState[];
  /** Series of which parts of `whole` are not settled. */
  readonly gaps: readonly SeriesState[];
}

/** Positions are sequence numbers; series are named by their place in the segment's dictionary. */
export class Coverage {
  /** Stretches of which every series is covered, but for `gaps`. */
  readonly whole = new RangeSet();
  readonly #series = new Map<number, RangeSet>();
  readonly #gaps = new Map<number, RangeSet>();
  /** Where the first stretch of single series, or gap, begins and the last one ends, at most. */
  #from = Number.POSITIVE_INFINITY;
  #to = Number.NEGATIVE_INFINITY;

  get isEmpty(): boolean {
    return this.whole.isEmpty && this.#series.size === 0;
  }

  /** Some series differ from `whole`. */
  get hasSeries(): boolean {
    return this.#series.size > 0 || this.#gaps.size > 0;
  }

  get hasGaps(): boolean {
    return this.#gaps.size > 0;
  }

  get seriesCount(): number {
    return this.#series.size;
  }

  /** Series that are covered by themselves somewhere. */
  series(): IterableIterator<[number, RangeSet]> {
    return this.#series.entries();
  }

  /** Series that are not covered in parts of `whole`. */
  gaps(): IterableIterator<[number, RangeSet]> {
    return this.#gaps.entries();
  }

  /** Whether the points that `series` has between `from` and `to` are covered. */
  covers(series: number, from: number, to: number): boolean {
    if (this.#series.get(series)?.covers(from, to)) return true;
    return this.whole.covers(from, to) && !this.#gaps.get(series)?.touches(from, to);
  }

  /** What of these series, each in its stretches, is covered. */
  *coveredOf(wanted: ReadonlyMap<number, RangeSet>): Generator<[series: number, from: number, to: number]> {
    for (const [series, stretches] of wanted)
      for (const [from, to] of stretches.ranges()) {
        const covered = new RangeSet();
        for (const [begin, end] of this.whole.ranges(from, to)) covered.add(begin, end);
        for (const [begin, end] of this.#gaps.get(series)?.ranges(from, to) ?? []) covered.remove(begin, end);
        for (const [begin, end] of this.#series.get(series)?.ranges(from, to) ?? []) covered.add(begin, end);
        for (const [begin, end] of covered.ranges()) yield [series, begin, end];
      }
  }

  /** Whether the points of every series between `from` and `to` are covered by `whole`. */
  coversAll(from: number, to: number): boolean {
    if (!this.whole.covers(from, to)) return false;
    for (const ranges of this.#gaps.values()) if (ranges.touches(from, to)) return false;
    return true;
  }

  /** The gaps of the series that `wanted` names, as one set. */
  gapsOf(wanted: (series: number) => boolean): RangeSet {
    const open = new RangeSet();
    for (const [series, ranges] of this.#gaps)
      if (wanted(series)) for (const [from, to] of ranges.ranges()) open.add(from, to);
    return open;
  }

  /** Whether any series between `from` and `to` differs from `whole`. */
  touchesSeries(from: number, to: number): boolean {
    for (const ranges of this.#series.values()) if (ranges.touches(from, to)) return true;
    for (const ranges of this.#gaps.values()) if (ranges.touches(from, to)) return true;
    return false;
  }

  /** False: no series between `from` and `to` differs from `whole`. Takes no time, and may be wrong when it is true. */
  mayTouchSeries(from: number, to: number): boolean {
    return this.hasSeries && from < this.#to && to > this.#from;
  }

  addSeries(series: number, from: number, to: number): void {
    remove(this.#gaps, series, from, to);
    if (!this.whole.covers(from, to)) this.#note(this.#series, series, from, to);
    this.#narrow();
  }

  removeSeries(series: number, from: number, to: number): void {
    remove(this.#series, series, from, to);
    for (const [begin, end] of this.whole.ranges(from, to)) this.#note(this.#gaps, series, begin, end);
    this.#narrow();
  }

  /** As the state on disk has it. */
  state(): SettledState {
    const listed = (sets: Iterable<[number, RangeSet]>) =>
      [...sets].map(([place, ranges]) => ({ place, bounds: ranges.bounds }));
    return { whole: this.whole.bounds, series: listed(this.#series), gaps: listed(this.#gaps) };
  }

  /** Adds what the state on disk says. */
  restore({ whole, series, gaps }: SettledState): void {
    for (const [from, to] of new RangeSet(whole).ranges()) this.addWhole(from, to);
    for (const { place, bounds } of series)
      for (const [from, to] of new RangeSet(bounds).ranges()) this.addSeries(place, from, to);
    for (const { place, bounds } of gaps)
      for (const [from, to] of new RangeSet(bounds).ranges()) this.removeSeries(place, from, to);
  }

  clear(): void {
    this.whole.clear();
    this.#series.clear();
    this.#gaps.clear();
    this.#narrow();
  }

  /** The whole stretch, of every series: what single series had of it is part of that now. */
  addWhole(from: number, to: number): void {
    this.whole.add(from, to);
    this.#forget(from, to);
  }

  /** Nothing of the stretch is covered any more. */
  removeWhole(from: number, to: number): void {
    this.whole.remove(from, to);
    this.#forget(from, to);
  }

  #forget(from: number, to: number): void {
    for (const series of this.#series.keys()) remove(this.#series, series, from, to);
    for (const series of this.#gaps.keys()) remove(this.#gaps, series, from, to);
    this.#narrow();
  }

  #note(sets: Map<number, RangeSet>, series: number, from: number, to: number): void {
    let ranges = sets.get(series);
    if (!ranges) sets.set(series, (ranges = new RangeSet()));
    ranges.add(from, to);
    this.#from = Math.min(this.#from, from);
    this.#to = Math.max(this.#to, to);
  }

  #narrow(): void {
    if (this.hasSeries) return;
    this.#from = Number.POSITIVE_INFINITY;
    this.#to = Number.NEGATIVE_INFINITY;
  }
}

function remove(sets: Map<number, RangeSet>, series: number, from: number, to: number): void {
  const ranges = sets.get(series);
  ranges?.remove(from, to);
  if (ranges?.isEmpty) sets.delete(series);
}
