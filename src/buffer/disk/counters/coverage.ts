// The settled, or the leased, points of one segment, in three sets:
// - `whole`: ranges in which every series is covered,
// - `gaps`: exceptions from `whole`, by series,
// - `series`: ranges of single series outside of `whole`.
// Their size follows the exceptions: if two of 10,000 series wait, only the gaps of those two are stored.
import { RangeSet } from "./ranges.ts";
import type { SegmentState } from "./state-file.ts";

/** The settled points of a segment as stored in the state file. */
type SettledState = Pick<SegmentState, "whole" | "series" | "gaps">;

type SeriesRanges = Iterable<readonly [series: number, ranges: RangeSet]>;

const none = new RangeSet();

/** Ranges contain sequence numbers. A series is identified by its place in the segment's dictionary. */
export class Coverage {
  readonly whole = new RangeSet();
  readonly #series = new Map<number, RangeSet>();
  readonly #gaps = new Map<number, RangeSet>();
  /** Outer limits of the ranges in `#series` and `#gaps`; may be wider than these. */
  #from = Number.POSITIVE_INFINITY;
  #to = Number.NEGATIVE_INFINITY;

  get isEmpty(): boolean {
    return this.whole.isEmpty && this.#series.size === 0;
  }

  get hasSeries(): boolean {
    return this.#series.size > 0 || this.#gaps.size > 0;
  }

  /** End of the last range of any series. */
  get end(): number {
    return Math.max(this.whole.bounds.at(-1) ?? Number.NEGATIVE_INFINITY, this.#to);
  }

  get series(): ReadonlyMap<number, RangeSet> {
    return this.#series;
  }

  get gaps(): ReadonlyMap<number, RangeSet> {
    return this.#gaps;
  }

  /** Whether all points of `series` from `from` to before `to` are covered. */
  covers(series: number, from: number, to: number): boolean {
    if (this.#series.get(series)?.covers(from, to)) return true;
    return this.whole.covers(from, to) && !this.#gaps.get(series)?.touches(from, to);
  }

  /** Whether the points of every series from `from` to before `to` are covered by `whole`. */
  coversAll(from: number, to: number): boolean {
    return this.whole.covers(from, to) && !anyTouches(this.#gaps, from, to);
  }

  gapsOf(wanted: (series: number) => boolean): RangeSet {
    const open = new RangeSet();
    for (const [series, ranges] of this.#gaps) if (wanted(series)) open.addAll(ranges);
    return open;
  }

  /** Whether the coverage of any series differs from `whole` between `from` and `to`. */
  touchesSeries(from: number, to: number): boolean {
    return anyTouches(this.#series, from, to) || anyTouches(this.#gaps, from, to);
  }

  /** A fast check before `touchesSeries`: false is certain, true may be wrong. */
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

  /** Covers every series in these ranges. The series of `except` keep their coverage in the ranges given for them. */
  addWhole(ranges: RangeSet, except: SeriesRanges = []): void {
    const kept = this.#coveredOf(except);
    this.whole.addAll(ranges);
    this.#forget(ranges);
    for (const { series, part, covered } of kept) {
      this.removeSeries(series, part);
      this.addSeries(series, covered);
    }
  }

  /** Removes the coverage of every series in these ranges, with the same meaning of `except`. */
  removeWhole(ranges: RangeSet, except: SeriesRanges = []): void {
    const kept = this.#coveredOf(except);
    this.whole.removeAll(ranges);
    this.#forget(ranges);
    for (const { series, covered } of kept) this.addSeries(series, covered);
  }

  state(): SettledState {
    const listed = (sets: Iterable<[number, RangeSet]>) =>
      [...sets].map(([place, ranges]) => ({ place, bounds: ranges.bounds }));
    return { whole: this.whole.bounds, series: listed(this.#series), gaps: listed(this.#gaps) };
  }

  /** Adds the part of a stored state from `first` to before `end`. False: the state reached beyond it. */
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
