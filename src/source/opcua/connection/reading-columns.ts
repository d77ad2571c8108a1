// Collects readings in columns: good finite numbers with the device's time compactly, all others separately.
import type { ReadingBatch, ReadPlace } from "../../../core/reading.ts";
import type { Reading } from "../../../core/source.ts";

export class ReadingColumns {
  readonly #places: readonly ReadPlace[];
  readonly #rows: Uint32Array<ArrayBuffer>;
  /** First half: values. Second half: their times. */
  readonly #values: Float64Array<ArrayBuffer>;
  readonly #apart = new Map<number, Reading>();
  #length = 0;

  /** `places`: as in `ReadingBatch`; may grow. */
  constructor(places: readonly ReadPlace[], capacity: number) {
    this.#places = places;
    this.#rows = new Uint32Array(capacity);
    this.#values = new Float64Array(2 * capacity);
  }

  get isFull(): boolean {
    return this.#length === this.#rows.length;
  }

  /** `row`: index of the reading's place. Requires that `isFull` is false. */
  add(row: number, reading: Reading): void {
    const { value, time, clock, quality, historical } = reading;
    const isNumber = typeof value === "number" && Number.isFinite(value);
    if (!isNumber || clock !== "device" || quality !== "good" || historical) this.#apart.set(this.#length, reading);
    this.addNumber(row, isNumber ? value : Number.NaN, time);
  }

  /** Like `add`, for a good finite number with the device's time that is not historical. */
  addNumber(row: number, value: number, time: number): void {
    const at = this.#length++;
    this.#rows[at] = row;
    this.#values[at] = value;
    this.#values[this.#rows.length + at] = time;
  }

  batch(): ReadingBatch {
    const [places, apart, length, capacity] = [this.#places, this.#apart, this.#length, this.#rows.length];
    const rows = this.#rows.subarray(0, length);
    const times = this.#values.subarray(capacity, capacity + length);
    return { places, rows, values: this.#values.subarray(0, length), times, clock: "device", apart };
  }
}
