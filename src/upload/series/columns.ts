// Points of one series side by side, in memory that is used again: what packer and writer look at.
import { type Steps, stepWork } from "../../lib/in-slices.ts";

/** Columns of the same length; `length` of each array is capacity, `count` is how much of it is filled. */
export class Columns {
  times = new Float64Array(1_024);
  /** As `scaledNumber` gives them. */
  values = new Float64Array(1_024);
  forms = new Uint8Array(1_024);
  count = 0;

  /** Makes room for `count` points; what stood here before is gone. */
  reserve(count: number): void {
    this.count = 0;
    if (count <= this.times.length) return;
    const capacity = Math.ceil(count * 1.25);
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
    this.forms = new Uint8Array(capacity);
  }

  /** Sorts by time and keeps the last of those with the same time, as storing them one after the other would. */
  *sort(): Steps<void> {
    const { times, values, forms, count } = this;
    const order = yield* mergeOrder(times, count);
    const sorted = {
      times: new Float64Array(times.length),
      values: new Float64Array(times.length),
      forms: new Uint8Array(times.length),
    };
    let kept = 0;
    for (let from = 0; from < count; from += stepWork) {
      const to = Math.min(count, from + stepWork);
      for (let i = from; i < to; i++) {
        const at = order[i]!;
        if (i + 1 < count && times[order[i + 1]!] === times[at]) continue;
        sorted.times[kept] = times[at]!;
        sorted.values[kept] = values[at]!;
        sorted.forms[kept++] = forms[at]!;
      }
      yield to - from;
    }
    this.times = sorted.times;
    this.values = sorted.values;
    this.forms = sorted.forms;
    this.count = kept;
  }
}

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
