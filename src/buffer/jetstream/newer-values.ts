// Renews a frame before it is published again behind later ones, which may have been delivered already.
//
//   frame 1   a@10 = 1      removed from the stream, not known as settled: published again with a@10 = 2
//   frame 2   a@10 = 2      delivered
import type { StreamFrame } from "./stream-frame.ts";

/** Gives `frame` the values that `later` has for its times. False: it has none. */
export function renew(frame: StreamFrame, later: StreamFrame): boolean {
  if (frame.node !== later.node || frame.dictionary !== later.dictionary) return false;
  const seriesOf = new Map(Array.from(later.numbers, (number, series) => [number, series] as const));
  let isRenewed = false;
  for (const [series, number] of frame.numbers.entries()) {
    const newest = seriesOf.get(number);
    if (newest === undefined) continue;
    // Of equal times, the last one counts.
    const newer = new Map(Array.from(pointsOf(later, newest), ([time, at]) => [time, later.values[at]!] as const));
    for (const [time, at] of pointsOf(frame, series)) {
      const value = newer.get(time);
      if (value === undefined) continue;
      frame.values[at] = value;
      isRenewed = true;
    }
  }
  return isRenewed;
}

/** The time of each point of a series, and where its value is. */
function* pointsOf({ times, timeStarts, valueStarts }: StreamFrame, series: number): Generator<[number, number]> {
  const start = valueStarts[series]!;
  for (let at = start; at < valueStarts[series + 1]!; at++) yield [times[timeStarts[series]! + at - start]!, at];
}
