// What the simulated devices gave away: the other side of the comparison with what the service has.
import type { InputId } from "../core/point.ts";

/** Distinct values by the Input ID they are mapped to. */
export type HandedOut = ReadonlyMap<InputId, ReadonlySet<number>>;

/** Grows with every value that leaves a device. Its size is bounded by how long a demo runs: about 50 bytes a value. */
export class HandedOutRecord {
  readonly #values = new Map<InputId, Set<number>>();
  #count = 0;

  /** Distinct (input, value) so far. */
  get count(): number {
    return this.#count;
  }

  add(input: InputId, value: number): void {
    let values = this.#values.get(input);
    if (!values) {
      values = new Set();
      this.#values.set(input, values);
    }
    if (values.has(value)) return;
    values.add(value);
    this.#count++;
  }

  get values(): HandedOut {
    return this.#values;
  }
}
