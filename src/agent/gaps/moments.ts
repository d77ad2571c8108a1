// Sets of times as sorted, disjoint intervals. Pure.
import type { EpochMicros } from "../../core/point.ts";

/** Both ends are times of existing values; the interval is the time between. Equal ends mean that moment. */
export type Interval = readonly [from: EpochMicros, to: EpochMicros];

/** Union of the set and an interval. */
export function joined(moments: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  const apart = moments.filter(([begin, end]) => end < from || begin > to);
  const touching = moments.filter(([begin, end]) => end >= from && begin <= to);
  const all: Interval = [
    touching.reduce((least, [begin]) => (begin < least ? begin : least), from),
    touching.reduce((most, [, end]) => (end > most ? end : most), to),
  ];
  return [...apart, all].toSorted((a, b) => a[0] - b[0]);
}

/** The set without the interval. */
export function without(moments: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  return moments.flatMap(([begin, end]): Interval[] => {
    if (begin === end) return begin >= from && end <= to ? [] : [[begin, end]];
    const left: Interval[] = [];
    if (begin < from) left.push([begin, end < from ? end : from]);
    if (end > to) left.push([begin > to ? begin : to, end]);
    return left;
  });
}

/** Merges the oldest intervals so that at most `most` remain. */
export function atMost(most: number, moments: readonly Interval[]): readonly Interval[] {
  const [first] = moments;
  const last = moments[moments.length - most];
  return moments.length <= most || !first || !last ? moments : [[first[0], last[1]], ...moments.slice(1 - most)];
}
