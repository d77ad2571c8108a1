// Sets of whole numbers as ascending, disjoint, half-open ranges: which points of a segment are settled.

/** Few ranges, changed mostly at their ends. */
export class RangeSet {
  /** Begin and end of each range, ascending; ranges never touch. */
  #bounds: number[];

  constructor(bounds: readonly number[] = []) {
    this.#bounds = [...bounds];
  }

  get isEmpty(): boolean {
    return this.#bounds.length === 0;
  }

  /** Begin, end, begin, end … of the ranges. */
  get bounds(): readonly number[] {
    return this.#bounds;
  }

  /** Begin and end of what each range has between `from` and `to`. */
  *ranges(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): Generator<[from: number, to: number]> {
    for (let i = this.#after(from) & ~1; i < this.#bounds.length && this.#bounds[i]! < to; i += 2)
      yield [Math.max(from, this.#bounds[i]!), Math.min(to, this.#bounds[i + 1]!)];
  }

  /** What it has between `from` and `to`. */
  within(from: number, to: number): RangeSet {
    return new RangeSet([...this.ranges(from, to)].flat());
  }

  /** How many numbers are in it. */
  get count(): number {
    return this.countIn(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Whether all of `from` to before `to` is in it. */
  covers(from: number, to: number): boolean {
    if (from >= to) return true;
    const at = this.#after(from);
    return at % 2 === 1 && this.#bounds[at]! >= to;
  }

  /** Whether any of `from` to before `to` is in it. */
  touches(from: number, to: number): boolean {
    if (from >= to) return false;
    const at = this.#after(from);
    return at % 2 === 1 || (at < this.#bounds.length && this.#bounds[at]! < to);
  }

  add(from: number, to: number): void {
    if (from >= to) return;
    const bounds = this.#bounds;
    // The usual case: the numbers go on where the last range ends.
    const last = bounds[bounds.length - 1];
    if (last === undefined || from > last) {
      bounds.push(from, to);
      return;
    }
    let start = this.#firstAtLeast(from);
    let end = this.#after(to);
    let begin = from;
    let until = to;
    if (start % 2 === 1) begin = bounds[--start]!;
    if (end % 2 === 1) until = bounds[end++]!;
    bounds.splice(start, end - start, begin, until);
  }

  remove(from: number, to: number): void {
    if (from >= to) return;
    const start = this.#firstAtLeast(from);
    const end = this.#after(to);
    const kept: number[] = [];
    if (start % 2 === 1) kept.push(from);
    if (end % 2 === 1) kept.push(to);
    this.#bounds.splice(start, end - start, ...kept);
  }

  /** What of it is not in `other`. */
  minus(other: RangeSet): RangeSet {
    const rest = new RangeSet(this.#bounds);
    rest.removeAll(other);
    return rest;
  }

  addAll({ bounds }: RangeSet): void {
    for (let i = 0; i < bounds.length; i += 2) this.add(bounds[i]!, bounds[i + 1]!);
  }

  removeAll({ bounds }: RangeSet): void {
    for (let i = 0; i < bounds.length; i += 2) this.remove(bounds[i]!, bounds[i + 1]!);
  }

  /** Where the range that holds `value` ends; undefined when none does. */
  endOf(value: number): number | undefined {
    const at = this.#after(value);
    return at % 2 === 1 ? this.#bounds[at] : undefined;
  }

  /** Where it begins. */
  startOf(value: number): number | undefined {
    const at = this.#after(value);
    return at % 2 === 1 ? this.#bounds[at - 1] : undefined;
  }

  /** Removes the lowest range that does not hold `but`. */
  removeFirst(but: number): void {
    this.#bounds.splice(this.endOf(but) === this.#bounds[1] ? 2 : 0, 2);
  }

  clear(): void {
    this.#bounds = [];
  }

  /** How many of `from` to before `to` are in it. */
  countIn(from: number, to: number): number {
    let count = 0;
    for (let i = this.#after(from) & ~1; i < this.#bounds.length && this.#bounds[i]! < to; i += 2)
      count += Math.max(0, Math.min(to, this.#bounds[i + 1]!) - Math.max(from, this.#bounds[i]!));
    return count;
  }

  /** Index of the first bound above `value`: odd when `value` is in a range. */
  #after(value: number): number {
    return this.#search((bound) => bound > value);
  }

  #firstAtLeast(value: number): number {
    return this.#search((bound) => bound >= value);
  }

  #search(is: (bound: number) => boolean): number {
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (is(this.#bounds[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
