// Readings on their way into columns: the good numbers with a time of the device, and the others apart.
import type { ReadingBatch, ReadPlace } from "../../../core/reading.ts";
import type { Reading } from "../../../core/source.ts";

export class ReadingColumns {
  readonly #places: readonly ReadPlace[];
  readonly #rows: Uint32Array<ArrayBuffer>;
  /** Values, and behind them their times. */
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

  /** `row`: the index of its place. There must be room. */
  add(row: number, reading: Reading): void {
    const { value, time, clock, quality, historical } = reading;
    const at = this.#length++;
    const isNumber = typeof value === "number" && Number.isFinite(value);
    this.#rows[at] = row;
    this.#values[at] = isNumber ? value : Number.NaN;
    this.#values[this.#rows.length + at] = time;
    if (!isNumber || clock !== "device" || quality !== "good" || historical) this.#apart.set(at, reading);
  }

  batch(): ReadingBatch {
    const [places, apart, length, capacity] = [this.#places, this.#apart, this.#length, this.#rows.length];
    const rows = this.#rows.subarray(0, length);
    const times = this.#values.subarray(capacity, capacity + length);
    return { places, rows, values: this.#values.subarray(0, length), times, clock: "device", apart };
  }
}
