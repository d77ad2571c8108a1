// Which times the inputs with `sameTime: keep` have values for, so that a further value gets a free time behind them.
//
//   times that come    10  10  10        12  10
//   ranges occupied    [10,11) → [10,13)     [10,13) [12…] is covered → 13, then 14
//
// Values of one coarse time make one range, so finding a free time takes no longer however many they are. Bounded: of each
// input the latest ranges are remembered, and the one used last, so that older values that come one time after another
// keep clear of each other.
import { RangeSet } from "../accounts/range-set.ts";

/** Ranges remembered for each input: as many different times of a coarse clock. */
export const mostKeptRanges = 64;

export class KeptTimes {
  readonly #ranges = new Map<number, RangeSet>();
  /** Inputs that are not in the file yet. */
  readonly unnamed = new Set<number>();

  /** Inputs and the ranges of times that they have values for. */
  entries(): IterableIterator<[number, RangeSet]> {
    return this.#ranges.entries();
  }

  rangesOf(input: number): RangeSet | undefined {
    return this.#ranges.get(input);
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0;
  }

  has(input: number): boolean {
    return this.#ranges.has(input);
  }

  /** The first free time at or after `time`, which is taken from now on. `mark`: the latest time of the input, if it is known. */
  place(input: number, time: number, mark: number): number {
    let ranges = this.#ranges.get(input);
    if (!ranges) {
      ranges = new RangeSet(Number.isFinite(mark) ? [mark, mark + 1] : []);
      this.#ranges.set(input, ranges);
      this.unnamed.add(input);
    }
    const place = ranges.endOf(time) ?? time;
    this.occupy(input, place);
    return place;
  }

  /** A value is stored for this time since before. */
  occupy(input: number, from: number, to = from + 1): void {
    const ranges = this.#ranges.get(input) ?? new RangeSet();
    this.#ranges.set(input, ranges);
    ranges.add(from, to);
    if (ranges.bounds.length > 2 * mostKeptRanges) ranges.removeFirst(from);
  }

  /** The value for which `place` gave this time was not stored. */
  free(input: number, time: number): void {
    this.#ranges.get(input)?.remove(time, time + 1);
  }
}
