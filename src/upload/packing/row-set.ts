// The distinct times of a frame while it is being planned.
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import { mergeOrder } from "../series/columns.ts";

const empty = Number.NaN;
/** Looking a time up takes as long as copying so many: it is anywhere in memory. */
export const lookupWork = 4;
const perStep = stepWork / lookupWork;

/** A set of numbers with the order in which they came. Open addressing, at most half full; memory is used again. */
export class RowSet {
  #slots = new Float64Array(4_096).fill(empty);
  #rows = new Float64Array(2_048);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  clear(): void {
    // One at a time would leave holes in the chains of those that are still to be found.
    if (this.#count > 0) this.#slots.fill(empty);
    this.#count = 0;
  }

  has(time: number): boolean {
    return this.#slots[this.#find(time)] === time;
  }

  /** False when it was there already. There has to be room for it: see `reserve`. */
  add(time: number): boolean {
    const slot = this.#find(time);
    if (this.#slots[slot] === time) return false;
    if (this.#count === this.#rows.length) throw new RangeError("no room for another time");
    this.#slots[slot] = time;
    this.#rows[this.#count++] = time;
    return true;
  }

  /** Makes room for so many times in all. */
  *reserve(count: number): Steps<void> {
    let capacity = this.#rows.length;
    if (count <= capacity) return;
    while (capacity < count) capacity *= 2;
    const rows = new Float64Array(capacity);
    rows.set(this.#rows);
    this.#rows = rows;
    this.#slots = new Float64Array(capacity * 2).fill(empty);
    // Fresh memory, touched for the first time.
    yield capacity / 2;
    for (let from = 0; from < this.#count; from += perStep) {
      const to = Math.min(this.#count, from + perStep);
      for (let i = from; i < to; i++) this.#slots[this.#find(rows[i]!)] = rows[i]!;
      yield (to - from) * lookupWork;
    }
  }

  /** A copy, by ascending time. */
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

  /** The slot of `time`, or the free one where it would go. */
  #find(time: number): number {
    const mask = this.#slots.length - 1;
    const low = (time % 0x1_0000_0000) | 0;
    let slot = Math.imul(low ^ ((time / 0x1_0000_0000) | 0), 0x9e3779b1);
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const found = this.#slots[slot]!;
      if (found === time || found !== found) return slot;
      slot = (slot + 1) & mask;
    }
  }
}
