// The times at which inputs with `sameTime: keep` have values. A further value at such a time gets the next free time.
//
//   appended times     10  10  10        12  10
//   ranges occupied    [10,11) → [10,13)     [10,13) [12…] is covered → 13, then 14
//
// Values of one coarse time form one range, so finding a free time does not depend on their number. Only the latest
// ranges of each input are kept, plus the one used last, so that successive older values get different times.
import { RangeSet } from "../counters/range-set.ts";

/** Maximum ranges kept per input, one for each different time of a coarse clock. */
export const mostKeptRanges = 64;

export class KeptTimes {
  readonly #ranges = new Map<number, RangeSet>();
  /** Inputs that are not in `kept.json` yet. */
  readonly unnamed = new Set<number>();

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

  /** Occupies and returns the first free time from `time` on. `mark`: the input's latest time, if known. */
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

  occupy(input: number, from: number, to = from + 1): void {
    const ranges = this.#ranges.get(input) ?? new RangeSet();
    this.#ranges.set(input, ranges);
    ranges.add(from, to);
    if (ranges.bounds.length > 2 * mostKeptRanges) ranges.removeFirst(from);
  }

  /** Frees a time that `place` returned, because its value was not stored. */
  free(input: number, time: number): void {
    this.#ranges.get(input)?.remove(time, time + 1);
  }
}
