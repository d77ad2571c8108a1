// Sets of times as sorted, disjoint intervals. Pure.
import type { EpochMicros } from "../../core/point.ts";

/** Both ends are times of existing values; the interval is the time between. Equal ends mean that moment. */
export type Interval = readonly [from: EpochMicros, to: EpochMicros];

/** Union of the set and an interval. */
export function joined(intervals: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  const apart = intervals.filter(([begin, end]) => end < from || begin > to);
  const touching = intervals.filter(([begin, end]) => end >= from && begin <= to);
  const all: Interval = [
    touching.reduce((least, [begin]) => (begin < least ? begin : least), from),
    touching.reduce((most, [, end]) => (end > most ? end : most), to),
  ];
  return [...apart, all].toSorted((a, b) => a[0] - b[0]);
}

/** The set without the interval. */
export function without(intervals: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  return intervals.flatMap(([begin, end]): Interval[] => {
    if (begin === end) return begin >= from && end <= to ? [] : [[begin, end]];
    const left: Interval[] = [];
    if (begin < from) left.push([begin, end < from ? end : from]);
    if (end > to) left.push([begin > to ? begin : to, end]);
    return left;
  });
}

/** Merges the oldest intervals so that at most `most` remain. */
export function atMost(most: number, intervals: readonly Interval[]): readonly Interval[] {
  const [first] = intervals;
  const last = intervals[intervals.length - most];
  return intervals.length <= most || !first || !last ? intervals : [[first[0], last[1]], ...intervals.slice(1 - most)];
}

/** Stores the remaining intervals, or deletes the entry if none remain. */
export function keepLeft<T>(
  known: Map<string, T>,
  input: string,
  intervals: readonly Interval[],
  of: (left: readonly Interval[]) => T,
): void {
  if (intervals.length === 0) known.delete(input);
  else known.set(input, of(intervals));
}
