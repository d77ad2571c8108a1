// Sets of moments, as intervals in order that do not touch: what is missing of a tag, and what is still looked for. Pure.
import type { EpochMicros } from "../../core/point.ts";

/** Begin and end; both are values that are there, what lies between them is meant. Both the same: that moment. */
export type Interval = readonly [from: EpochMicros, to: EpochMicros];

/** All of both. */
export function joined(moments: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  const apart = moments.filter(([begin, end]) => end < from || begin > to);
  const touching = moments.filter(([begin, end]) => end >= from && begin <= to);
  const all: Interval = [
    touching.reduce((least, [begin]) => (begin < least ? begin : least), from),
    touching.reduce((most, [, end]) => (end > most ? end : most), to),
  ];
  return [...apart, all].toSorted((a, b) => a[0] - b[0]);
}

/** What is left of them without those of the interval. */
export function without(moments: readonly Interval[], [from, to]: Interval): readonly Interval[] {
  return moments.flatMap(([begin, end]): Interval[] => {
    if (begin === end) return begin >= from && end <= to ? [] : [[begin, end]];
    const left: Interval[] = [];
    if (begin < from) left.push([begin, end < from ? end : from]);
    if (end > to) left.push([begin > to ? begin : to, end]);
    return left;
  });
}

/** The oldest ones become one where they are more. */
export function atMost(most: number, moments: readonly Interval[]): readonly Interval[] {
  const [first] = moments;
  const last = moments[moments.length - most];
  return moments.length <= most || !first || !last ? moments : [[first[0], last[1]], ...moments.slice(1 - most)];
}
