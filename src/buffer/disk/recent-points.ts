// Remembers the newest points of each input, so that one time of one input never carries two values: the service would
// silently keep the later one. Bounded: the newest point of every input, and a window of the last points of all.
//
// A time after the newest of its input is free; only others are looked up. What is older than the window is taken as
// free, too: such a point may repeat or replace one that was stored long ago.
import type { PointColumns } from "./point-columns.ts";

/** Points in the window: 20 bytes each and 8 for finding them. */
export const recentWindow = 131_072;
/**
 * Most sealed segments that are kept for it, delivered or not. Each start begins one, so it is also how many restarts in
 * a row a point is known over. They hold fewer points than the window, but for the oldest, so reading them stays short.
 */
export const mostRecentSegments = 64;

export interface Admission {
  /** How many points are to be stored. */
  readonly count: number;
  readonly duplicates: number;
  readonly collided: number;
}

export class RecentPoints {
  readonly #capacity: number;
  #newestTimes = new Float64Array(64).fill(Number.NEGATIVE_INFINITY);
  #newestValues = new Float64Array(64);
  /** A ring of the last points, and, once one had to be looked up, chains of a hash table through it. */
  #inputs: Uint32Array;
  #times: Float64Array;
  #values: Float64Array;
  #next: Int32Array;
  #heads: Int32Array;
  #isIndexed = false;
  #insertsSinceLookUp = 0;
  #count = 0;
  #at = 0;
  /** Points that `admit` took and that are not stored yet, from `#stored` to before `#admitted`. */
  #group: PointColumns = { inputs: new Uint32Array(), times: new Float64Array(), values: new Float64Array(), count: 0 };
  #stored = 0;
  #admitted = 0;
  /** The same by input and time; made when a point has to be looked up among them. */
  #unstored: Map<number, Map<number, number>> | undefined;

  constructor(capacity = recentWindow) {
    this.#capacity = capacity;
    const size = Math.min(1_024, capacity);
    this.#inputs = new Uint32Array(size);
    this.#times = new Float64Array(size);
    this.#values = new Float64Array(size);
    this.#next = new Int32Array(size);
    this.#heads = new Int32Array(size * 2).fill(-1);
  }

  /**
   * Drops what is there already and moves what would collide, in place. The points that stay come first; `confirm`
   * says how many of them are stored, `undo` gives the places of the others back.
   */
  admit(group: PointColumns): Admission {
    this.#group = group;
    this.#stored = 0;
    this.#admitted = 0;
    this.#unstored = undefined;
    let collided = 0;
    const { inputs, times, values, count } = group;
    for (let i = 0; i < count; i++) {
      const input = inputs[i]!;
      const value = values[i]!;
      const time = this.#claim(input, times[i]!, value);
      if (time === undefined) continue;
      if (time !== times[i]) collided++;
      const at = this.#admitted++;
      inputs[at] = input;
      times[at] = time;
      values[at] = value;
      if (this.#unstored) note(this.#unstored, input, time, value);
    }
    return { count: this.#admitted, duplicates: count - this.#admitted, collided };
  }

  /** The first `count` points of the group are stored. */
  confirm(count: number): void {
    const { inputs, times, values } = this.#group;
    for (; this.#stored < count; this.#stored++)
      this.#insert(inputs[this.#stored]!, times[this.#stored]!, values[this.#stored]!);
  }

  /** The rest of the group was not stored: its places are free again. */
  undo(): void {
    const inputs = new Set(this.#group.inputs.subarray(this.#stored, this.#admitted));
    this.#admitted = this.#stored;
    this.#unstored = undefined;
    for (const input of inputs) this.#newestTimes[input] = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < this.#count; i++) {
      const input = this.#inputs[i]!;
      if (inputs.has(input)) this.#noteNewest(input, this.#times[i]!, this.#values[i]!);
    }
  }

  /** A point that is on disk since before. */
  remember(input: number, time: number, value: number): void {
    if (input >= this.#newestTimes.length) this.#growInputs(input);
    this.#insert(input, time, value);
    this.#noteNewest(input, time, value);
  }

  /** The free time at or after `time`, in steps of 1 µs; undefined when the same value stands on the way. */
  #claim(input: number, time: number, value: number): number | undefined {
    if (input >= this.#newestTimes.length) this.#growInputs(input);
    for (let free = time; ; free++) {
      const newest = this.#newestTimes[input]!;
      if (free > newest) {
        this.#newestTimes[input] = free;
        this.#newestValues[input] = value;
        return free;
      }
      const there = free === newest ? this.#newestValues[input]! : this.#find(input, free);
      if (there === undefined) return free;
      if (Object.is(there, value)) return undefined;
    }
  }

  #noteNewest(input: number, time: number, value: number): void {
    if (time <= this.#newestTimes[input]!) return;
    this.#newestTimes[input] = time;
    this.#newestValues[input] = value;
  }

  #find(input: number, time: number): number | undefined {
    if (!this.#unstored) {
      this.#unstored = new Map();
      const { inputs, times, values } = this.#group;
      for (let i = this.#stored; i < this.#admitted; i++) note(this.#unstored, inputs[i]!, times[i]!, values[i]!);
    }
    const unstored = this.#unstored.get(input)?.get(time);
    if (unstored !== undefined) return unstored;
    this.#insertsSinceLookUp = 0;
    if (!this.#isIndexed) this.#indexAll();
    for (let at = this.#heads[this.#hash(input, time)]!; at >= 0; at = this.#next[at]!)
      if (this.#inputs[at] === input && this.#times[at] === time) return this.#values[at];
    return undefined;
  }

  #insert(input: number, time: number, value: number): void {
    if (this.#count === this.#times.length) {
      if (this.#count < this.#capacity) this.#growWindow();
      else if (this.#isIndexed) this.#unlink(this.#at);
    }
    const at = this.#at;
    this.#inputs[at] = input;
    this.#times[at] = time;
    this.#values[at] = value;
    if (this.#isIndexed) {
      this.#link(at);
      // Points that come in order need no table, and it costs more than all the rest.
      if (++this.#insertsSinceLookUp > this.#capacity) this.#isIndexed = false;
    }
    this.#at = at + 1 === this.#times.length ? 0 : at + 1;
    if (this.#count < this.#times.length) this.#count++;
  }

  #indexAll(): void {
    this.#isIndexed = true;
    this.#heads.fill(-1);
    for (let at = 0; at < this.#count; at++) this.#link(at);
  }

  #link(at: number): void {
    const slot = this.#hash(this.#inputs[at]!, this.#times[at]!);
    this.#next[at] = this.#heads[slot]!;
    this.#heads[slot] = at;
  }

  #unlink(at: number): void {
    const slot = this.#hash(this.#inputs[at]!, this.#times[at]!);
    if (this.#heads[slot] === at) {
      this.#heads[slot] = this.#next[at]!;
      return;
    }
    let before = this.#heads[slot]!;
    while (this.#next[before] !== at) before = this.#next[before]!;
    this.#next[before] = this.#next[at]!;
  }

  #hash(input: number, time: number): number {
    const high = Math.floor(time / 4_294_967_296);
    let hash = Math.imul(input + 1, 0x9e37_79b1) ^ Math.imul(time >>> 0, 0x85eb_ca6b) ^ Math.imul(high, 0xc2b2_ae35);
    hash ^= hash >>> 15;
    return (Math.imul(hash, 0x2c1b_3c6d) >>> 8) % this.#heads.length;
  }

  #growWindow(): void {
    // Full for the first time, so the oldest is at 0 and the newest at the end.
    const { inputs, times, values } = { inputs: this.#inputs, times: this.#times, values: this.#values };
    const size = Math.min(this.#capacity, times.length * 2);
    this.#at = times.length;
    this.#inputs = new Uint32Array(size);
    this.#times = new Float64Array(size);
    this.#values = new Float64Array(size);
    this.#next = new Int32Array(size);
    this.#heads = new Int32Array(size * 2).fill(-1);
    this.#inputs.set(inputs);
    this.#times.set(times);
    this.#values.set(values);
    if (this.#isIndexed) this.#indexAll();
  }

  #growInputs(input: number): void {
    const size = 2 ** Math.ceil(Math.log2(input + 2));
    const times = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
    const values = new Float64Array(size);
    times.set(this.#newestTimes);
    values.set(this.#newestValues);
    this.#newestTimes = times;
    this.#newestValues = values;
  }
}

function note(points: Map<number, Map<number, number>>, input: number, time: number, value: number): void {
  const times = points.get(input) ?? new Map<number, number>();
  points.set(input, times);
  times.set(time, value);
}
