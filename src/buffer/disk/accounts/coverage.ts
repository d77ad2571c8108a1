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

/** Series and ranges of each. */
type SeriesRanges = Iterable<readonly [series: number, ranges: RangeSet]>;

const none = new RangeSet();

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

  /** Where the last stretch ends, of every series or of a single one. */
  get end(): number {
    return Math.max(this.whole.bounds.at(-1) ?? Number.NEGATIVE_INFINITY, this.#to);
  }

  /** Series that are covered by themselves somewhere. */
  get series(): ReadonlyMap<number, RangeSet> {
    return this.#series;
  }

  /** Series that are not covered in parts of `whole`. */
  get gaps(): ReadonlyMap<number, RangeSet> {
    return this.#gaps;
  }

  /** Whether the points that `series` has between `from` and `to` are covered. */
  covers(series: number, from: number, to: number): boolean {
    if (this.#series.get(series)?.covers(from, to)) return true;
    return this.whole.covers(from, to) && !this.#gaps.get(series)?.touches(from, to);
  }

  /** Whether the points of every series between `from` and `to` are covered by `whole`. */
  coversAll(from: number, to: number): boolean {
    return this.whole.covers(from, to) && !anyTouches(this.#gaps, from, to);
  }

  /** The gaps of the series that `wanted` names, as one set. */
  gapsOf(wanted: (series: number) => boolean): RangeSet {
    const open = new RangeSet();
    for (const [series, ranges] of this.#gaps) if (wanted(series)) open.addAll(ranges);
    return open;
  }

  /** Whether any series between `from` and `to` differs from `whole`. */
  touchesSeries(from: number, to: number): boolean {
    return anyTouches(this.#series, from, to) || anyTouches(this.#gaps, from, to);
  }

  /** False: no series between `from` and `to` differs from `whole`. Takes no time, and may be wrong when it is true. */
  mayTouchSeries(from: number, to: number): boolean {
    return this.hasSeries && from < this.#to && to > this.#from;
  }

  addSeries(series: number, ranges: RangeSet): void {
    remove(this.#gaps, series, ranges);
    const { bounds } = ranges;
    for (let i = 0; i < bounds.length; i += 2)
      if (!this.whole.covers(bounds[i]!, bounds[i + 1]!)) this.#note(this.#series, series, bounds[i]!, bounds[i + 1]!);
    this.#narrow();
  }

  removeSeries(series: number, ranges: RangeSet): void {
    remove(this.#series, series, ranges);
    const { bounds } = ranges;
    for (let i = 0; i < bounds.length; i += 2)
      for (const [from, to] of this.whole.ranges(bounds[i], bounds[i + 1])) this.#note(this.#gaps, series, from, to);
    this.#narrow();
  }

  /** Covers every series in these ranges; those of `except` stay as they are in theirs. */
  addWhole(ranges: RangeSet, except: SeriesRanges = []): void {
    const kept = this.#coveredOf(except);
    this.whole.addAll(ranges);
    this.#forget(ranges);
    for (const { series, part, covered } of kept) {
      this.removeSeries(series, part);
      this.addSeries(series, covered);
    }
  }

  /** Covers nothing in these ranges any more; series of `except` stay as they are in theirs. */
  removeWhole(ranges: RangeSet, except: SeriesRanges = []): void {
    const kept = this.#coveredOf(except);
    this.whole.removeAll(ranges);
    this.#forget(ranges);
    for (const { series, covered } of kept) this.addSeries(series, covered);
  }

  /** As the state on disk has it. */
  state(): SettledState {
    const listed = (sets: Iterable<[number, RangeSet]>) =>
      [...sets].map(([place, ranges]) => ({ place, bounds: ranges.bounds }));
    return { whole: this.whole.bounds, series: listed(this.#series), gaps: listed(this.#gaps) };
  }

  /** Adds what the state on disk says of `first` to before `end`. False: it said more than that. */
  restore({ whole, series, gaps }: SettledState, first = -Infinity, end = Infinity): boolean {
    let isAll = true;
    const within = (bounds: readonly number[]) => {
      isAll &&= (bounds[0] ?? first) >= first && (bounds.at(-1) ?? end) <= end;
      return new RangeSet(bounds).within(first, end);
    };
    this.addWhole(within(whole));
    for (const { place, bounds } of series) this.addSeries(place, within(bounds));
    for (const { place, bounds } of gaps) this.removeSeries(place, within(bounds));
    return isAll;
  }

  clear(): void {
    this.whole.clear();
    this.#series.clear();
    this.#gaps.clear();
    this.#narrow();
  }

  #coveredOf(wanted: SeriesRanges) {
    return Array.from(wanted, ([series, part]) => {
      const covered = new RangeSet();
      for (const [from, to] of part.ranges()) {
        covered.addAll(this.whole.within(from, to));
        covered.removeAll(this.#gaps.get(series)?.within(from, to) ?? none);
        covered.addAll(this.#series.get(series)?.within(from, to) ?? none);
      }
      return { series, part, covered };
    });
  }

  #forget(ranges: RangeSet): void {
    for (const sets of [this.#series, this.#gaps]) for (const series of sets.keys()) remove(sets, series, ranges);
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

function anyTouches(sets: ReadonlyMap<number, RangeSet>, from: number, to: number): boolean {
  for (const ranges of sets.values()) if (ranges.touches(from, to)) return true;
  return false;
}

function remove(sets: Map<number, RangeSet>, series: number, part: RangeSet): void {
  const ranges = sets.get(series);
  ranges?.removeAll(part);
  if (ranges?.isEmpty) sets.delete(series);
}
