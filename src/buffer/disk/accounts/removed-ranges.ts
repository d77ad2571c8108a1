// Sequence numbers whose points are in no segment any more, and how many of them were lost. It tells what a segment held that
// is found again, and where a segment ends that cannot be read.
//
//   [0, 5000)      delivered               its segments are removed
//   [5000, 5200)   200 lost, "missing"     the segment was deleted
//   [6010, 6400)   delivered               left out when the segment that begins at 5200 was compacted

export interface RemovedRange {
  readonly first: number;
  readonly end: number;
  /** How many of them were lost; the others were settled. */
  readonly lost: number;
  /** Why they were lost; empty where none was. */
  readonly reason: string;
}

/** Beyond it, the oldest are no longer told apart. */
const mostRanges = 1_024;

export class RemovedRanges {
  /** Ascending and disjoint. */
  #ranges: RemovedRange[];

  constructor(ranges: readonly RemovedRange[] = []) {
    this.#ranges = [...ranges];
  }

  list(): readonly RemovedRange[] {
    return this.#ranges;
  }

  /** Adds what of these numbers is not in it yet. `lost` of their points were lost for the `reason`. */
  add(first: number, end: number, lost = 0, reason = ""): void {
    let left = lost;
    for (const gap of this.gapsIn(first, end)) {
      const points = Math.min(left, gap.end - gap.first);
      left -= points;
      this.#insert({ ...gap, lost: points, reason: points > 0 ? reason : "" });
    }
  }

  /** Points of these numbers, which are in it, turned out to be lost. */
  lose(first: number, end: number, lost: number, reason: string): void {
    let left = lost;
    this.#ranges = this.#ranges.flatMap((range) => {
      if (range.first >= end || range.end <= first || (range.reason !== reason && range.reason !== "")) return [range];
      // Delivered stretches may be one with their neighbours.
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

  /** What of these numbers is not in it. */
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

  /** Those that touch these numbers. */
  within(first: number, end: number): readonly RemovedRange[] {
    return this.#ranges.filter((range) => range.first < end && range.end > first);
  }

  /** Where the points end of a segment that begins at `first`; the next one begins at `limit`. */
  endOf(first: number, limit: number): number {
    let end = limit;
    for (const range of this.#ranges.toReversed()) {
      if (range.end === end && range.first > first) end = range.first;
      // The segment was removed, and is there again.
      if (range.first <= first && range.end > first) end = Math.min(end, range.end);
    }
    return end;
  }

  /** The points of these numbers are there again. Of what `range` keeps, as many are lost as it has room for. */
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

/** Whether both ranges can be merged: both delivered or both lost, and they cannot be restored separately. */
function isOne(a: RemovedRange, b: RemovedRange): boolean {
  const isWhole = (range: RemovedRange) => range.lost === 0 || range.lost === range.end - range.first;
  return a.end === b.first && a.reason === b.reason && a.reason !== "missing" && isWhole(a) && isWhole(b);
}

function joined(a: RemovedRange, b: RemovedRange): RemovedRange {
  return { first: a.first, end: b.end, lost: a.lost + b.lost, reason: a.reason };
}
