// The last 15 minutes of every tag and of the plotted figures, bounded in memory: 10,000 tags × 180 samples × 4 bytes =
// 7.2 MB.
//
// A sample is a row of 32-bit differences, indexed by the number of the series. Each is relative to the first value of
// its series, so that a plot shows the last digits of a large counter.
//
//   numbers      "a" → 0   "b" → 1
//   first        5e12      21.5        by number
//   rows[slot]      0       0.5        NaN: there was no value
import type { Status, StatusSample } from "../agent/status/status.ts";

/** Samples of a series, and milliseconds between two: 15 minutes. */
export const historySamples = 180;
export const historyStepMs = 5_000;
const historyTags = 10_000;

const figures = ["backlogPoints", "bufferBytes", "lagMs", "sentPoints", "budgetShare"] as const;
type Figure = (typeof figures)[number];

/** Values by ascending time; null: no value. */
export type Samples = readonly (number | null)[];

export class History {
  readonly #times = new Float64Array(historySamples).fill(Number.NaN);
  readonly #tags = new Rows<string>();
  readonly #figures = new Rows<Figure>();
  /** Number of samples so far. The next slot is this modulo `historySamples`. */
  #count = 0;

  /** Adds one sample of everything. Tags beyond the first 10,000 have no history; that of removed tags is deleted. */
  sample({ time, buffer, upload, values: valuesOf }: StatusSample): void {
    const slot = this.#count++ % historySamples;
    this.#times[slot] = time / 1_000;
    const values: Readonly<Record<Figure, number | undefined>> = {
      backlogPoints: upload.backlogPoints,
      bufferBytes: buffer.bytes,
      lagMs: upload.lagMs,
      sentPoints: upload.points,
      budgetShare: upload.budgetShare,
    };
    this.#figures.sample(slot, (each) => {
      for (const figure of figures) each(figure, values[figure]);
    });
    this.#tags.sample(slot, (each) => valuesOf(historyTags, each));
  }

  /** Milliseconds since the epoch, ascending. */
  get times(): readonly number[] {
    return this.#inOrder((slot) => this.#times[slot] ?? Number.NaN);
  }

  tag(input: string): Samples {
    return this.#tags.has(input) ? this.#inOrder((slot) => this.#tags.get(slot, input)) : [];
  }

  figure(figure: Figure): Samples {
    return this.#figures.has(figure) ? this.#inOrder((slot) => this.#figures.get(slot, figure)) : [];
  }

  #inOrder<T>(of: (slot: number) => T): T[] {
    const length = Math.min(this.#count, historySamples);
    return Array.from({ length }, (_, i) => of((this.#count - length + i) % historySamples));
  }
}

/** The history of the plotted figures: the answer of `/api/history`. */
export function figureHistory(history: History): object {
  return {
    times: history.times,
    figures: Object.fromEntries(figures.map((figure) => [figure, history.figure(figure)])),
  };
}

export function sampleOf(status: Status): StatusSample {
  return {
    ...status,
    values(most, each) {
      for (const { input, value } of status.tags.slice(0, most)) each(input, value);
    },
  };
}

/** The structure drawn above. */
class Rows<Key extends string> {
  readonly #numbers = new Map<Key, number>();
  readonly #keys: (Key | undefined)[] = [];
  /** Free numbers of removed series. */
  readonly #free: number[] = [];
  /** First value of each series, by number; NaN before it has one. */
  readonly #first: number[] = [];
  /** Stamp of the last sample with the series, by number. */
  readonly #stamps: number[] = [];
  readonly #rows: Float32Array[] = [];
  #stamp = 0;

  has(key: Key): boolean {
    return this.#numbers.has(key);
  }

  get(slot: number, key: Key): number | null {
    const number = this.#numbers.get(key) ?? -1;
    const difference = this.#rows[slot]?.[number] ?? Number.NaN;
    return Number.isNaN(difference) ? null : difference + (this.#first[number] ?? 0);
  }

  sample(slot: number, values: (each: (key: Key, value: number | undefined) => void) => void): void {
    const stamp = ++this.#stamp;
    let row = this.#rows[slot] ?? new Float32Array(this.#first.length);
    row.fill(Number.NaN);
    let seen = 0;
    let next = 0;
    values((key, value = Number.NaN) => {
      // Samples usually have one order, which saves looking up 10,000 names.
      const number = this.#keys[next] === key ? next : (this.#numbers.get(key) ?? this.#add(key));
      if (number === undefined) return;
      next = number + 1;
      if (number >= row.length) row = longer(row, number);
      if (Number.isNaN(this.#first[number]!)) this.#first[number] = value;
      row[number] = value - this.#first[number]!;
      if (this.#stamps[number] !== stamp) seen++;
      this.#stamps[number] = stamp;
    });
    this.#rows[slot] = row;
    if (seen < this.#numbers.size) this.#forgetOthers(stamp);
  }

  /** Undefined: the maximum number of series is reached. */
  #add(key: Key): number | undefined {
    if (this.#numbers.size >= historyTags) return undefined;
    const number = this.#free.pop() ?? this.#first.length;
    this.#numbers.set(key, number);
    this.#keys[number] = key;
    this.#first[number] = Number.NaN;
    this.#stamps[number] = 0;
    return number;
  }

  /** Removes the series that are not in the sample of `stamp`. */
  #forgetOthers(stamp: number): void {
    for (const [key, number] of this.#numbers) {
      if (this.#stamps[number] === stamp) continue;
      this.#numbers.delete(key);
      this.#keys[number] = undefined;
      this.#free.push(number);
      for (const row of this.#rows) if (number < row.length) row[number] = Number.NaN;
    }
  }
}

/** A longer copy with a place for `number`, which may be far beyond the end of an old row. */
function longer(row: Float32Array, number: number): Float32Array {
  const all = new Float32Array(Math.min(historyTags, Math.max(16, 2 * row.length, number + 1))).fill(Number.NaN);
  all.set(row);
  return all;
}
