// Points of one series side by side, in memory that is used again: what packer and writer look at.
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import { mergeOrder } from "./merge-order.ts";

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
