// Puts the series that a take has chosen from several frames together.
import type { OpenFrame } from "./frame-lease.ts";
import type { StreamFrame } from "./stream-frame.ts";

export interface StreamCut {
  readonly frames: readonly OpenFrame[];
  /** Series taken from each frame. */
  readonly series: readonly (readonly number[])[];
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly points: number;
}

export interface ReadFrame {
  readonly frame: StreamFrame;
  readonly open: OpenFrame;
}

/** `series`: the chosen ones of each frame. The result is in the order of the stream. */
export function cutOf(taken: readonly ReadFrame[], series: readonly (readonly number[])[], points: number): StreamCut {
  const order = [...taken.keys()].sort((a, b) => taken[a]!.open.sequence! - taken[b]!.open.sequence!);
  const [places, times, values] = [new Uint32Array(points), new Float64Array(points), new Float64Array(points)];
  let at = 0;
  for (const i of order) {
    const { frame, open } = taken[i]!;
    for (const s of series[i]!) {
      const [start, end] = [frame.valueStarts[s]!, frame.valueStarts[s + 1]!];
      const time = frame.timeStarts[s]!;
      places.fill(open.inputs[s]!, at, at + end - start);
      times.set(frame.times.subarray(time, time + end - start), at);
      values.set(frame.values.subarray(start, end), at);
      at += end - start;
    }
  }
  return { frames: taken.map(({ open }) => open), series, places, times, values, points };
}
