// Points of one delivery in columns. They grow if heartbeats or held points are added.

import { type EpochMicros, epochMicros, type InputId, type Point, type PointBatch } from "../core/point.ts";
import type { RepeatedList } from "../lib/values/repeated-list.ts";

export class PointColumnsWriter implements PointBatch {
  readonly #inputs: RepeatedList<InputId>;
  #ended: readonly InputId[] | undefined;
  times: Float64Array<ArrayBuffer>;
  values: Float64Array<ArrayBuffer>;
  keeps: Uint8Array<ArrayBuffer> | undefined;

  /** `inputs`: builds the list of inputs, which it shares with equal batches before. */
  constructor(capacity: number, inputs: RepeatedList<InputId>) {
    this.#inputs = inputs;
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
  }

  get length(): number {
    return this.inputs.length;
  }

  /** Complete after `end`. */
  get inputs(): readonly InputId[] {
    return this.#ended ?? [];
  }

  end(): void {
    this.#ended = this.#inputs.take();
  }

  add(input: InputId, time: EpochMicros, value: number, keeps: boolean): void {
    const at = this.#inputs.length;
    if (at === this.times.length) this.#grow();
    this.#inputs.add(input);
    this.times[at] = time;
    this.values[at] = value;
    if (keeps) (this.keeps ??= new Uint8Array(this.times.length))[at] = 1;
  }

  *[Symbol.iterator](): Generator<Point, void> {
    for (const [i, input] of this.inputs.entries()) {
      const point = { input, time: epochMicros(this.times[i]!), value: this.values[i]! };
      yield this.keeps?.[i] === 1 ? { ...point, sameTime: "keep" } : point;
    }
  }

  #grow(): void {
    const length = Math.max(16, this.times.length * 2);
    const { times, values, keeps } = this;
    (this.times = new Float64Array(length)).set(times);
    (this.values = new Float64Array(length)).set(values);
    if (keeps) (this.keeps = new Uint8Array(length)).set(keeps);
  }
}
