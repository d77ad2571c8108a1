// Which series of which blocks were settled, as lists of slots one behind the other: a request settles thousands of series of
// hundreds of blocks, and mostly all series of a block, of which no list has to be made.
import type { InputId } from "../../core/point.ts";

export class SettledLog {
  #slots = new Uint32Array(256);
  #count = 0;
  /** Up to where the slots are of which input. */
  readonly #inputs: InputId[] = [];
  readonly #ends: number[] = [];

  get count(): number {
    return this.#count;
  }

  /** Slots, of which `count` are in use, with room for as many more. Valid until the next call. */
  slots(more: number): Uint32Array {
    if (this.#count + more > this.#slots.length) {
      const larger = new Uint32Array(2 * (this.#count + more));
      larger.set(this.#slots.subarray(0, this.#count));
      this.#slots = larger;
    }
    return this.#slots;
  }

  /** The slots up to `end` that were written since the last call are of blocks in which this series is settled. */
  endSeries(input: InputId, end: number): void {
    if (end > this.#count) {
      this.#inputs.push(input);
      this.#ends.push(end);
    }
    this.#count = end;
  }

  /** Adds the inputs of the slots that have a list. */
  collect(lists: ReadonlyMap<number, InputId[]>): void {
    if (lists.size === 0) return;
    let at = 0;
    for (const [i, input] of this.#inputs.entries())
      for (const end = this.#ends[i]!; at < end; at++) lists.get(this.#slots[at]!)?.push(input);
  }

  clear(): void {
    this.#count = 0;
    this.#inputs.length = 0;
    this.#ends.length = 0;
    // A long outage must not keep its size for ever.
    if (this.#slots.length > 2 ** 16) this.#slots = new Uint32Array(256);
  }
}
