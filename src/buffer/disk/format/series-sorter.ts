// Sorts points by series and time. A counting sort by series; sorts by time only if times do not ascend.
import { copied } from "../files/bytes.ts";
import type { SortedColumns } from "./columns.ts";

/** Reuses its memory: a result is valid until the next call. */
export class SeriesSorter {
  #counts = new Uint32Array(64);
  #series = new Uint32Array(64);
  #starts = new Uint32Array(65);
  #times = new Float64Array(256);
  #values = new Float64Array(256);

  /** Points of the same series and time stay in their order. */
  sort(ids: Uint32Array, times: Float64Array, values: Float64Array, from: number, to: number): SortedColumns {
    const seriesCount = this.#count(ids, from, to);
    const count = to - from;
    if (this.#times.length < count) {
      this.#times = new Float64Array(roomFor(count));
      this.#values = new Float64Array(roomFor(count));
    }
    let start = 0;
    for (let i = 0; i < seriesCount; i++) {
      const id = this.#series[i]!;
      const n = this.#counts[id]!;
      this.#starts[i] = start;
      this.#counts[id] = start;
      start += n;
    }
    this.#starts[seriesCount] = start;
    for (let i = from; i < to; i++) {
      const at = this.#counts[ids[i]!]!++;
      this.#times[at] = times[i]!;
      this.#values[at] = values[i]!;
    }
    for (let i = 0; i < seriesCount; i++) {
      this.#counts[this.#series[i]!] = 0;
      this.#sortByTime(this.#starts[i]!, this.#starts[i + 1]!);
    }
    return {
      series: this.#series,
      starts: this.#starts,
      seriesCount,
      times: this.#times,
      values: this.#values,
    };
  }

  shrink(points: number): void {
    if (this.#times.length <= points) return;
    this.#times = new Float64Array(256);
    this.#values = new Float64Array(256);
  }

  #count(ids: Uint32Array, from: number, to: number): number {
    let seriesCount = 0;
    let ascending = true;
    for (let i = from; i < to; i++) {
      const id = ids[i]!;
      if (id >= this.#counts.length) this.#counts = copied(this.#counts, new Uint32Array(roomFor(id + 1)));
      if (this.#counts[id]!++ > 0) continue;
      if (seriesCount === this.#series.length) this.#growSeries();
      if (seriesCount > 0 && id < this.#series[seriesCount - 1]!) ascending = false;
      this.#series[seriesCount++] = id;
    }
    if (!ascending) this.#series.subarray(0, seriesCount).sort();
    return seriesCount;
  }

  #growSeries(): void {
    this.#series = copied(this.#series, new Uint32Array(this.#series.length * 2));
    this.#starts = new Uint32Array(this.#series.length + 1);
  }

  #sortByTime(start: number, end: number): void {
    const times = this.#times;
    let i = start + 1;
    while (i < end && times[i]! >= times[i - 1]!) i++;
    if (i >= end) return;
    const values = this.#values;
    const order = Array.from({ length: end - start }, (_, k) => start + k).sort((a, b) => times[a]! - times[b]!);
    const sortedTimes = order.map((at) => times[at]!);
    const sortedValues = order.map((at) => values[at]!);
    times.set(sortedTimes, start);
    values.set(sortedValues, start);
  }
}

const roomFor = (count: number) => 2 ** Math.ceil(Math.log2(Math.max(count, 64)));
