// Readings on their way into columns: the good numbers with a time of the device, and the others apart.
import type { ReadingBatch, ReadPlace } from "../../../core/reading.ts";
import type { Reading } from "../../../core/source.ts";

export class ReadingColumns {
  readonly #places: readonly ReadPlace[];
  readonly #rows: Uint32Array<ArrayBuffer>;
  readonly #values: Float64Array<ArrayBuffer>;
  readonly #times: Float64Array<ArrayBuffer>;
  readonly #apart = new Map<number, Reading>();
  #length = 0;

  /** `places`: as in `ReadingBatch`. May grow. */
  constructor(places: readonly ReadPlace[], capacity: number) {
    this.#places = places;
    this.#rows = new Uint32Array(capacity);
    this.#values = new Float64Array(capacity);
    this.#times = new Float64Array(capacity);
  }

  get isFull(): boolean {
    return this.#length === this.#rows.length;
  }

  /** `row`: the index of its place. There must be room. */
  add(row: number, reading: Reading): void {
    const at = this.#length++;
    const { value, time, clock, quality, historical } = reading;
    const isNumber = typeof value === "number" && Number.isFinite(value);
    this.#rows[at] = row;
    this.#values[at] = isNumber ? value : Number.NaN;
    this.#times[at] = time;
    if (!isNumber || clock !== "device" || quality !== "good" || historical) this.#apart.set(at, reading);
  }

  batch(): ReadingBatch {
    const [rows, values, times] = [this.#rows, this.#values, this.#times];
    const length = this.#length;
    const columns = {
      rows: rows.subarray(0, length),
      values: values.subarray(0, length),
      times: times.subarray(0, length),
    };
    return { places: this.#places, ...columns, clock: "device", ...(this.#apart.size > 0 && { apart: this.#apart }) };
  }
}
