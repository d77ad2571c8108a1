// Points of one series in columns, in reused memory, for packer and writer.
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";

/** Columns of equal capacity, of which the first `count` elements are used. */
export class Columns {
  times = new Float64Array(1_024);
  /** As returned by `scaledNumber`. */
  values = new Float64Array(1_024);
  forms = new Uint8Array(1_024);
  count = 0;

  /** Ensures capacity for `count` points; discards the content. */
  reserve(count: number): void {
    this.count = 0;
    if (count <= this.times.length) return;
    const capacity = Math.ceil(count * 1.25);
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
    this.forms = new Uint8Array(capacity);
  }

  /** Sorts by time. Of equal times, only the last point is kept, as storing them in order would. */
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

/** Cost of comparing two numbers by index and copying one. */
const workOfEach = 2;
const perStep = stepWork / workOfEach;

interface Merge {
  /** Next index of the left run and of the right one, and the output position. */
  left: number;
  right: number;
  at: number;
}

/** Natural merge sort, stable: indices of the first `count` `keys` in ascending order. */
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
