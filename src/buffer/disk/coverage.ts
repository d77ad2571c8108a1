// Which points of one segment are done with, or handed out: whole stretches of the log, and stretches of single series.
import { RangeSet } from "./range-set.ts";

/** Positions are sequence numbers; series are named by their place in the segment's dictionary. */
export class Coverage {
  readonly whole = new RangeSet();
  readonly #series = new Map<number, RangeSet>();
  /** Where the first stretch of single series begins and the last one ends, at most. */
  #from = Number.POSITIVE_INFINITY;
  #to = Number.NEGATIVE_INFINITY;

  get isEmpty(): boolean {
    return this.whole.isEmpty && this.#series.size === 0;
  }

  get hasSeries(): boolean {
    return this.#series.size > 0;
  }

  get seriesCount(): number {
    return this.#series.size;
  }

  /** Series that are covered by themselves somewhere. */
  series(): IterableIterator<[number, RangeSet]> {
    return this.#series.entries();
  }

  /** Whether the points that `series` has between `from` and `to` are covered. */
  covers(series: number, from: number, to: number): boolean {
    return this.whole.covers(from, to) || (this.#series.get(series)?.covers(from, to) ?? false);
  }

  /** Whether any series by itself is covered between `from` and `to`. */
  touchesSeries(from: number, to: number): boolean {
    for (const ranges of this.#series.values()) if (ranges.touches(from, to)) return true;
    return false;
  }

  /** False: no series by itself is covered between `from` and `to`. Takes no time, and may be wrong when it is true. */
  mayTouchSeries(from: number, to: number): boolean {
    return this.#series.size > 0 && from < this.#to && to > this.#from;
  }

  addSeries(series: number, from: number, to: number): void {
    let ranges = this.#series.get(series);
    if (!ranges) {
      ranges = new RangeSet();
      this.#series.set(series, ranges);
    }
    ranges.add(from, to);
    this.#from = Math.min(this.#from, from);
    this.#to = Math.max(this.#to, to);
  }

  removeSeries(series: number, from: number, to: number): void {
    const ranges = this.#series.get(series);
    ranges?.remove(from, to);
    if (ranges?.isEmpty) this.#delete(series);
  }

  clear(): void {
    this.whole.clear();
    for (const series of this.#series.keys()) this.#delete(series);
  }

  /** The whole stretch, of every series: what single series had of it is part of that now. */
  addWhole(from: number, to: number): void {
    this.whole.add(from, to);
    for (const [series, ranges] of this.#series) {
      ranges.remove(from, to);
      if (ranges.isEmpty) this.#delete(series);
    }
  }

  #delete(series: number): void {
    this.#series.delete(series);
    if (this.#series.size > 0) return;
    this.#from = Number.POSITIVE_INFINITY;
    this.#to = Number.NEGATIVE_INFINITY;
  }
}
