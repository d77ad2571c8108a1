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
    const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => times[a]! - times[b]! || a - b);
    const sortedTimes = order.map((i) => times[i]!);
    const sortedValues = order.map((i) => values[i]!);
    const sortedForms = order.map((i) => forms[i]!);
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
