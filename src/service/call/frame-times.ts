// The times of a data frame, with which its series become points.
import type { BlockColumns } from "../store/point-block.ts";

export class FrameTimes {
  readonly #times: Float64Array;
  /** Indices sorted by time. Undefined: the times ascend strictly. */
  readonly #order: Uint32Array | undefined;

  /** `times` in microseconds since the epoch, in any order. */
  constructor(times: Float64Array) {
    this.#times = times;
    // Equal times keep their order.
    if (times.some((time, i) => i > 0 && time <= times[i - 1]!))
      this.#order = Uint32Array.from(times.keys()).sort((a, b) => times[a]! - times[b]! || a - b);
  }

  get length(): number {
    return this.#times.length;
  }

  /**
   * The points of a series by ascending time, the last of equal times. Null and NaN mean no value. Returns the given
   * arrays if there is nothing to drop or sort.
   */
  columnsOf(values: ArrayLike<number | null>): BlockColumns {
    const times = this.#times;
    const order = this.#order;
    if (order === undefined && values instanceof Float64Array && !values.includes(Number.NaN)) return { times, values };
    const outTimes = new Float64Array(times.length);
    const outValues = new Float64Array(times.length);
    let count = 0;
    for (let i = 0; i < times.length; i++) {
      const from = order === undefined ? i : order[i]!;
      const value = values[from] ?? Number.NaN;
      if (Number.isNaN(value)) continue;
      const time = times[from]!;
      if (count > 0 && outTimes[count - 1] === time) count--;
      outTimes[count] = time;
      outValues[count++] = value;
    }
    return count === times.length
      ? { times: outTimes, values: outValues }
      : { times: outTimes.slice(0, count), values: outValues.slice(0, count) };
  }
}
