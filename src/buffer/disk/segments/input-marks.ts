// Separates points in order from late ones, with one mark per input: the latest time and its newest value.
//
//   time > mark   in order: no stored point has this time. Either lane may deliver it.
//   time ≤ mark   late: it may replace a stored value, so it is delivered first in, first out, in a record of its own.
//
// Constant time and 17 bytes per input, however many points share a time. After a start the marks are unknown: the
// floor, which is the latest unsettled time, replaces all of them.

import { copied } from "../files/bytes.ts";
import { keepSameTime, type PointColumns } from "../format/input-table.ts";
import { KeptTimes } from "./kept-times.ts";

export interface Admission {
  /** Points to store. They are at the start of the group, those in order before the late ones. */
  readonly count: number;
  readonly inOrder: number;
  /** Points that repeat the newest value at the newest time of their input. */
  readonly duplicates: number;
  /** Points with the newest time of their input and another value, and points shifted by `sameTime: keep`. */
  readonly collided: number;
}

export class InputMarks {
  readonly kept: KeptTimes;
  /** Points of any input up to this time are late. */
  floor: number;
  #times = new Float64Array(64).fill(Number.NEGATIVE_INFINITY);
  #values = new Float64Array(64);
  /** 1: `#values` is the stored value at `#times`. */
  #isKnown = new Uint8Array(64);
  #lateInputs = new Uint32Array(256);
  #lateTimes = new Float64Array(256);
  #lateValues = new Float64Array(256);
  #late = 0;

  constructor(floor = Number.NEGATIVE_INFINITY, kept = new KeptTimes()) {
    this.floor = floor;
    this.kept = kept;
  }

  /**
   * Drops repeats, shifts points of inputs with `sameTime: keep`, and moves late points behind those in order. Changes
   * `group` in place. Call `undo` if the group was not stored completely.
   */
  admit(group: PointColumns): Admission {
    const { inputs, times, values, count } = group;
    let inOrder = 0;
    let collided = 0;
    this.#late = 0;
    for (let i = 0; i < count; i++) {
      const given = inputs[i]!;
      const value = values[i]!;
      const keeps = given >= keepSameTime;
      const input = keeps ? given - keepSameTime : given;
      if (input >= this.#times.length) this.#grow(input);
      const mark = this.#times[input]!;
      const time = keeps ? this.kept.place(input, times[i]!, mark) : times[i]!;
      if (time > mark) {
        this.#times[input] = time;
        this.#values[input] = value;
        this.#isKnown[input] = 1;
      } else if (time === mark) {
        if (this.#isKnown[input] === 1) {
          if (Object.is(this.#values[input], value)) continue;
          collided++;
        }
        this.#values[input] = value;
        this.#isKnown[input] = 1;
      }
      if (time !== times[i]) collided++;
      if (time > mark && time > this.floor) {
        inputs[inOrder] = input;
        times[inOrder] = time;
        values[inOrder++] = value;
      } else this.#addLate(input, time, value);
    }
    const late = this.#late;
    inputs.set(this.#lateInputs.subarray(0, late), inOrder);
    times.set(this.#lateTimes.subarray(0, late), inOrder);
    values.set(this.#lateValues.subarray(0, late), inOrder);
    return { count: inOrder + late, inOrder, duplicates: count - inOrder - late, collided };
  }

  /** After a failed append: the next try must not drop these points as repeats, nor overtake stored ones. */
  undo({ inputs, times }: PointColumns, { count }: Admission): void {
    for (let i = 0; i < count; i++) {
      this.#isKnown[inputs[i]!] = 0;
      this.kept.free(inputs[i]!, times[i]!);
    }
  }

  #addLate(input: number, time: number, value: number): void {
    if (this.#late === this.#lateTimes.length) {
      this.#lateInputs = copied(this.#lateInputs, new Uint32Array(this.#late * 2));
      this.#lateTimes = copied(this.#lateTimes, new Float64Array(this.#late * 2));
      this.#lateValues = copied(this.#lateValues, new Float64Array(this.#late * 2));
    }
    const at = this.#late++;
    this.#lateInputs[at] = input;
    this.#lateTimes[at] = time;
    this.#lateValues[at] = value;
  }

  #grow(input: number): void {
    const size = 2 ** Math.ceil(Math.log2(input + 2));
    this.#times = copied(this.#times, new Float64Array(size).fill(Number.NEGATIVE_INFINITY));
    this.#values = copied(this.#values, new Float64Array(size));
    this.#isKnown = copied(this.#isKnown, new Uint8Array(size));
  }
}
