// Points of one series side by side, in memory that is used again: what packer and writer look at.

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
  sort(): void {
    const { times, values, forms, count } = this;
    const order = orderOf(times, count);
    const sortedTimes = new Float64Array(count);
    const sortedValues = new Float64Array(count);
    const sortedForms = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      sortedTimes[i] = times[order[i]!]!;
      sortedValues[i] = values[order[i]!]!;
      sortedForms[i] = forms[order[i]!]!;
    }
    let kept = 0;
    for (let i = 0; i < count; i++) {
      if (i + 1 < count && sortedTimes[i + 1] === sortedTimes[i]) continue;
      times[kept] = sortedTimes[i]!;
      values[kept] = sortedValues[i]!;
      forms[kept] = sortedForms[i]!;
      kept++;
    }
    this.count = kept;
  }
}

/**
 * Positions of the first `count` times in ascending order, those of the same time as they stand. Merges what ascends
 * already: points that are out of order come as few runs mostly, and then this takes a pass or two.
 */
function orderOf(times: Float64Array, count: number): Uint32Array {
  let from = Uint32Array.from({ length: count }, (_, i) => i);
  let starts = [0];
  for (let i = 1; i < count; i++) if (times[i]! < times[i - 1]!) starts.push(i);
  let to = new Uint32Array(count);
  while (starts.length > 1) {
    const merged: number[] = [];
    for (let run = 0; run < starts.length; run += 2) {
      const left = starts[run]!;
      const middle = starts[run + 1] ?? count;
      merge(times, from, to, left, middle, starts[run + 2] ?? count);
      merged.push(left);
    }
    starts = merged;
    [from, to] = [to, from];
  }
  return from;
}

function merge(
  times: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  left: number,
  middle: number,
  end: number,
): void {
  let a = left;
  let b = middle;
  for (let at = left; at < end; at++)
    to[at] = a < middle && (b >= end || times[from[a]!]! <= times[from[b]!]!) ? from[a++]! : from[b++]!;
}
