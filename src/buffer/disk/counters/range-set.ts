// A set of integers as ascending, disjoint, half-open ranges. Holds the settled points of a segment.

/** Efficient for few ranges that change mostly at their ends. */
export class RangeSet {
  /** Alternating start and end of each range, ascending. Adjacent ranges are merged. */
  #bounds: number[];

  constructor(bounds: readonly number[] = []) {
    this.#bounds = [...bounds];
  }

  get isEmpty(): boolean {
    return this.#bounds.length === 0;
  }

  get bounds(): readonly number[] {
    return this.#bounds;
  }

  *ranges(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): Generator<[from: number, to: number]> {
    for (let i = this.#after(from) & ~1; i < this.#bounds.length && this.#bounds[i]! < to; i += 2)
      yield [Math.max(from, this.#bounds[i]!), Math.min(to, this.#bounds[i + 1]!)];
  }

  within(from: number, to: number): RangeSet {
    return new RangeSet([...this.ranges(from, to)].flat());
  }

  get count(): number {
    return this.countIn(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Whether the set contains every number from `from` to before `to`. */
  covers(from: number, to: number): boolean {
    if (from >= to) return true;
    const at = this.#after(from);
    return at % 2 === 1 && this.#bounds[at]! >= to;
  }

  /** Whether the set contains any number from `from` to before `to`. */
  touches(from: number, to: number): boolean {
    if (from >= to) return false;
    const at = this.#after(from);
    return at % 2 === 1 || (at < this.#bounds.length && this.#bounds[at]! < to);
  }

  add(from: number, to: number): void {
    if (from >= to) return;
    const bounds = this.#bounds;
    // Usual case: append after the last range.
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

  /** End of the range that contains `value`. Undefined: no range does. */
  endOf(value: number): number | undefined {
    const at = this.#after(value);
    return at % 2 === 1 ? this.#bounds[at] : undefined;
  }

  startOf(value: number): number | undefined {
    const at = this.#after(value);
    return at % 2 === 1 ? this.#bounds[at - 1] : undefined;
  }

  /** Removes the lowest range that does not contain `but`. */
  removeFirst(but: number): void {
    this.#bounds.splice(this.endOf(but) === this.#bounds[1] ? 2 : 0, 2);
  }

  clear(): void {
    this.#bounds = [];
  }

  /** How many numbers from `from` to before `to` are in the set. */
  countIn(from: number, to: number): number {
    let count = 0;
    for (let i = this.#after(from) & ~1; i < this.#bounds.length && this.#bounds[i]! < to; i += 2)
      count += Math.max(0, Math.min(to, this.#bounds[i + 1]!) - Math.max(from, this.#bounds[i]!));
    return count;
  }

  /** Index of the first bound above `value`. Odd if a range contains `value`. */
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
