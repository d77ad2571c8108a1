// The distinct times of a frame during planning.
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { mergeOrder } from "../series/columns.ts";

const empty = Number.NaN;
/** Cost of a lookup, in points. Lookups are random memory accesses. */
export const lookupWork = 4;
const perStep = stepWork / lookupWork;

/** A set of numbers in insertion order. Open addressing, at most half full; reuses its memory. */
export class RowSet {
  #slots = new Float64Array(4_096).fill(empty);
  #rows = new Float64Array(2_048);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  clear(): void {
    // Deleting single entries would break the probe chains.
    if (this.#count > 0) this.#slots.fill(empty);
    this.#count = 0;
  }

  has(time: number): boolean {
    return this.#slots[this.#find(time)] === time;
  }

  /** False: already present. Requires capacity: see `reserve`. */
  add(time: number): boolean {
    const slot = this.#find(time);
    if (this.#slots[slot] === time) return false;
    if (this.#count === this.#rows.length) throw new RangeError("no room for another time");
    this.#slots[slot] = time;
    this.#rows[this.#count++] = time;
    return true;
  }

  /** Ensures capacity for `count` times in total. */
  *reserve(count: number): Steps<void> {
    let capacity = this.#rows.length;
    if (count <= capacity) return;
    while (capacity < count) capacity *= 2;
    const rows = new Float64Array(capacity);
    rows.set(this.#rows);
    this.#rows = rows;
    this.#slots = new Float64Array(capacity * 2).fill(empty);
    // Cost of touching new memory.
    yield capacity / 2;
    for (let from = 0; from < this.#count; from += perStep) {
      const to = Math.min(this.#count, from + perStep);
      for (let i = from; i < to; i++) this.#slots[this.#find(rows[i]!)] = rows[i]!;
      yield (to - from) * lookupWork;
    }
  }

  /** A sorted copy. */
  *sorted(): Steps<Float64Array> {
    const rows = this.#rows;
    const order = yield* mergeOrder(rows, this.#count);
    const sorted = new Float64Array(order.length);
    for (let from = 0; from < order.length; from += stepWork) {
      const to = Math.min(order.length, from + stepWork);
      for (let i = from; i < to; i++) sorted[i] = rows[order[i]!]!;
      yield to - from;
    }
    return sorted;
  }

  /** The slot of `time`, or the free slot for it. */
  #find(time: number): number {
    const mask = this.#slots.length - 1;
    // `^` takes the low 32 bits.
    let slot = Math.imul(time ^ ((time / 0x1_0000_0000) | 0), 0x9e3779b1);
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const found = this.#slots[slot]!;
      if (found === time || found !== found) return slot;
      slot = (slot + 1) & mask;
    }
  }
}
