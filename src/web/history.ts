// The last 15 minutes of every tag and of the figures that are plotted, in memory and bounded:
// 10,000 tags × 180 samples × 4 bytes = 7.2 MB at most.
//
// All series share one ring of sample times. A series holds 32-bit differences to its first value, so that the last
// digits of a large counter still show in a plot.
import type { Status } from "../agent/status/status.ts";

/** Samples a series holds, and milliseconds between two: 15 minutes. */
export const historySamples = 180;
export const historyStepMs = 5_000;
/** Tags that have a history. */
export const historyTags = 10_000;

/** Figures of the whole agent that are plotted. */
export const figures = ["backlogPoints", "bufferBytes", "lagMs", "sentPoints", "budgetShare"] as const;
export type Figure = (typeof figures)[number];

/** Values by ascending time; null where there was none. */
export type Samples = readonly (number | null)[];

export class History {
  readonly #times = new Float64Array(historySamples).fill(Number.NaN);
  readonly #tags = new Map<string, Column>();
  readonly #figures = new Map<Figure, Column>();
  /** Samples taken so far. The next goes to this index modulo `historySamples`. */
  #count = 0;

  /** Takes one sample of everything. Tags beyond the first 10,000 have no history; those that are gone lose theirs. */
  sample(status: Status): void {
    const slot = this.#count++ % historySamples;
    this.#times[slot] = status.time / 1_000;
    const { buffer, upload } = status;
    const values: Readonly<Record<Figure, number | undefined>> = {
      backlogPoints: upload.backlogPoints,
      bufferBytes: buffer.bytes,
      lagMs: upload.lagMs,
      sentPoints: upload.points,
      budgetShare: upload.budgetShare,
    };
    for (const figure of figures) columnOf(this.#figures, figure).set(slot, values[figure]);
    for (const { input, value } of status.tags)
      if (this.#tags.has(input) || this.#tags.size < historyTags)
        columnOf(this.#tags, input).set(slot, value, this.#count);
    for (const [input, column] of this.#tags) if (column.stamp !== this.#count) this.#tags.delete(input);
  }

  /** Milliseconds since the epoch, ascending. */
  get times(): readonly number[] {
    return this.#inOrder((slot) => this.#times[slot] ?? Number.NaN);
  }

  tag(input: string): Samples {
    return this.#samples(this.#tags.get(input));
  }

  figure(figure: Figure): Samples {
    return this.#samples(this.#figures.get(figure));
  }

  #samples(column: Column | undefined): Samples {
    return column ? this.#inOrder((slot) => column.get(slot)) : [];
  }

  #inOrder<T>(of: (slot: number) => T): T[] {
    const length = Math.min(this.#count, historySamples);
    return Array.from({ length }, (_, i) => of((this.#count - length + i) % historySamples));
  }
}

/** One series: a base and differences to it, NaN for none. */
class Column {
  readonly #differences = new Float32Array(historySamples).fill(Number.NaN);
  #base: number | undefined;
  /** Sample count when it was last set. */
  stamp = 0;

  set(slot: number, value: number | undefined, stamp = 0): void {
    this.#base ??= value;
    this.#differences[slot] = value === undefined || this.#base === undefined ? Number.NaN : value - this.#base;
    this.stamp = stamp;
  }

  get(slot: number): number | null {
    const difference = this.#differences[slot] ?? Number.NaN;
    return Number.isNaN(difference) ? null : difference + (this.#base ?? 0);
  }
}

function columnOf<Key>(columns: Map<Key, Column>, key: Key): Column {
  const column = columns.get(key) ?? new Column();
  columns.set(key, column);
  return column;
}
