// Which points of one segment are done with, or handed out: whole stretches of the log, and stretches of single series.
import { RangeSet } from "./range-set.ts";

/** Positions are sequence numbers; series are named by their place in the segment's dictionary. */
export class Coverage {
  readonly whole = new RangeSet();
  readonly #series = new Map<number, RangeSet>();

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

  addSeries(series: number, from: number, to: number): void {
    let ranges = this.#series.get(series);
    if (!ranges) {
      ranges = new RangeSet();
      this.#series.set(series, ranges);
    }
    ranges.add(from, to);
  }

  removeSeries(series: number, from: number, to: number): void {
    const ranges = this.#series.get(series);
    ranges?.remove(from, to);
    if (ranges?.isEmpty) this.#series.delete(series);
  }

  clear(): void {
    this.whole.clear();
    this.#series.clear();
  }

  /** The whole stretch, of every series: what single series had of it is part of that now. */
  addWhole(from: number, to: number): void {
    this.whole.add(from, to);
    for (const [series, ranges] of this.#series) {
      ranges.remove(from, to);
      if (ranges.isEmpty) this.#series.delete(series);
    }
  }
}
