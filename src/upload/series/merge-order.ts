// Puts numbers in order that ascend in runs already, as the times of several series one behind the other do.
import { type Steps, stepWork } from "../../lib/in-slices.ts";

/** Comparing two numbers by way of their positions, and copying one. */
const workOfEach = 2;
const perStep = stepWork / workOfEach;

interface Merge {
  /** Next of the left run, of the right one, and where it goes. */
  left: number;
  right: number;
  at: number;
}

/**
 * Positions of the first `count` of `keys` in ascending order, those that are the same as they stand. Merges runs two by
 * two: few runs take a pass or two.
 */
export function* mergeOrder(keys: Float64Array, count: number): Steps<Uint32Array> {
  let from = new Uint32Array(count);
  let starts = count > 0 ? [0] : [];
  for (let start = 1; start < count; start += stepWork) {
    const stop = Math.min(count, start + stepWork);
    for (let i = start; i < stop; i++) {
      from[i] = i;
      if (keys[i]! < keys[i - 1]!) starts.push(i);
    }
    yield stop - start;
  }
  let to = new Uint32Array(starts.length > 1 ? count : 0);
  while (starts.length > 1) {
    const merged: number[] = [];
    for (let run = 0; run < starts.length; run += 2) {
      const left = starts[run]!;
      const middle = starts[run + 1] ?? count;
      const end = starts[run + 2] ?? count;
      const merge = { left, right: middle, at: left };
      while (merge.at < end) {
        const begun = merge.at;
        mergeUpTo(Math.min(end, begun + perStep), merge, keys, from, to, middle, end);
        yield (merge.at - begun) * workOfEach;
      }
      merged.push(left);
    }
    starts = merged;
    [from, to] = [to, from];
  }
  return from;
}

function mergeUpTo(
  stop: number,
  merge: Merge,
  keys: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  middle: number,
  end: number,
): void {
  let { left, right, at } = merge;
  for (; at < stop; at++)
    to[at] =
      left < middle && (right >= end || keys[from[left]!]! <= keys[from[right]!]!) ? from[left++]! : from[right++]!;
  merge.left = left;
  merge.right = right;
  merge.at = at;
}
