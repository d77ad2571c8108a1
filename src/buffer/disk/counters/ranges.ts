// Sets of sequence numbers: settled points of a segment, and points that are in no segment any more.

/** Integers as ascending, disjoint, half-open ranges. Efficient for few ranges that change mostly at their ends. */
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

// Sequence numbers that are in no segment any more, and how many of their points were lost. The buffer uses them when a
// removed segment is found again, and to determine where an unreadable segment ends.
//
//   [0, 5000)      delivered               its segments are removed
//   [5000, 5200)   200 lost, "missing"     the segment was deleted
//   [6010, 6400)   delivered               left out when the segment that begins at 5200 was compacted

export interface RemovedRange {
  readonly first: number;
  readonly end: number;
  readonly lost: number;
  /** Empty if no point was lost. */
  readonly reason: string;
}

/** Above this count, the oldest ranges are merged or forgotten. */
const mostRanges = 1_024;

export class RemovedRanges {
  #ranges: RemovedRange[];

  constructor(ranges: readonly RemovedRange[] = []) {
    this.#ranges = [...ranges];
  }

  list(): readonly RemovedRange[] {
    return this.#ranges;
  }

  /** Adds the numbers that are not in the set yet. Up to `lost` of these were lost for the `reason`. */
  add(first: number, end: number, lost = 0, reason = ""): void {
    let left = lost;
    for (const gap of this.gapsIn(first, end)) {
      const points = Math.min(left, gap.end - gap.first);
      left -= points;
      this.#insert({ ...gap, lost: points, reason: points > 0 ? reason : "" });
    }
  }

  /** Marks up to `lost` points of ranges in the set as lost. Skips ranges with another reason. */
  lose(first: number, end: number, lost: number, reason: string): void {
    let left = lost;
    this.#ranges = this.#ranges.flatMap((range) => {
      if (range.first >= end || range.end <= first || (range.reason !== reason && range.reason !== "")) return [range];
      // A delivered range may have been merged with its neighbours: only the part within these numbers is lost.
      const [from, to] =
        range.lost > 0 ? [range.first, range.end] : [Math.max(first, range.first), Math.min(end, range.end)];
      const points = Math.min(left, to - from - range.lost);
      left -= points;
      const part = { first: from, end: to, lost: range.lost + points, reason: range.lost + points > 0 ? reason : "" };
      const others = [
        { ...range, end: from },
        { ...range, first: to },
      ];
      return points > 0 ? [others[0]!, part, others[1]!].filter((each) => each.first < each.end) : [range];
    });
  }

  gapsIn(first: number, end: number): { readonly first: number; readonly end: number }[] {
    const gaps: { first: number; end: number }[] = [];
    let from = first;
    for (const range of this.#ranges) {
      if (range.end <= from) continue;
      if (range.first >= end) break;
      if (range.first > from) gaps.push({ first: from, end: range.first });
      from = range.end;
    }
    if (from < end) gaps.push({ first: from, end });
    return gaps;
  }

  within(first: number, end: number): readonly RemovedRange[] {
    return this.#ranges.filter((range) => range.first < end && range.end > first);
  }

  /** End of the points of a segment that begins at `first`; the next segment begins at `limit`. */
  endOf(first: number, limit: number): number {
    let end = limit;
    for (const range of this.#ranges.toReversed()) {
      if (range.end === end && range.first > first) end = range.first;
      // The segment had been removed and is present again.
      if (range.first <= first && range.end > first) end = Math.min(end, range.end);
    }
    return end;
  }

  /**
   * Removes these numbers: their points were found again, `found` counts the lost ones by range. The parts of a range
   * that stay keep its other lost points, as many as they have room for.
   */
  restore(first: number, end: number, found: ReadonlyMap<RemovedRange, number>): void {
    this.#ranges = this.#ranges.flatMap((range) => {
      if (range.first >= end || range.end <= first) return [range];
      let left = range.lost - (found.get(range) ?? 0);
      const kept = [
        { first: range.first, end: Math.min(first, range.end) },
        { first: Math.max(end, range.first), end: range.end },
      ].filter((part) => part.first < part.end);
      return kept.map((part) => {
        const lost = Math.min(left, part.end - part.first);
        left -= lost;
        return { ...part, lost, reason: lost > 0 ? range.reason : "" };
      });
    });
  }

  #insert(range: RemovedRange): void {
    let at = this.#ranges.findLastIndex(({ first }) => first < range.first) + 1;
    let inserted = range;
    const before = this.#ranges[at - 1];
    if (before && isOne(before, inserted)) {
      inserted = joined(before, inserted);
      at--;
      this.#ranges.splice(at, 1);
    }
    const after = this.#ranges[at];
    if (after && isOne(inserted, after)) {
      inserted = joined(inserted, after);
      this.#ranges.splice(at, 1);
    }
    this.#ranges.splice(at, 0, inserted);
    while (this.#ranges.length > mostRanges) this.#forgetOldest();
  }

  #forgetOldest(): void {
    const [oldest, next] = this.#ranges.splice(0, 2) as [RemovedRange, RemovedRange];
    const isNext = oldest.end === next.first;
    this.#ranges.unshift(isNext ? { first: oldest.first, end: next.end, lost: 0, reason: "" } : next);
  }
}

/** Whether ranges can be merged: both delivered, or both lost and not `missing`, since a file may be found again. */
function isOne(a: RemovedRange, b: RemovedRange): boolean {
  const isWhole = (range: RemovedRange) => range.lost === 0 || range.lost === range.end - range.first;
  return a.end === b.first && a.reason === b.reason && a.reason !== "missing" && isWhole(a) && isWhole(b);
}

function joined(a: RemovedRange, b: RemovedRange): RemovedRange {
  return { first: a.first, end: b.end, lost: a.lost + b.lost, reason: a.reason };
}
