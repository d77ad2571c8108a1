// Reads the points of one series out of the arena, from the oldest on, as many at a time as one likes.
import type { Columns } from "./columns.ts";
import { textLength } from "./number-text.ts";
import { type PointArena, segmentPoints } from "./point-arena.ts";

/** A place in a chain of segments. Good until points come or go. */
export class ChainCursor {
  readonly #arena: PointArena;
  #segment: number;
  #offset: number;

  constructor(arena: PointArena, segment: number, offset: number) {
    this.#arena = arena;
    this.#segment = segment;
    this.#offset = offset;
  }

  /** Copies the next `count` points behind what is in `into`, which has room for them; with `values` alone not their times. */
  copy(count: number, into: Columns, what: "points" | "values"): void {
    const { times, values, forms, next } = this.#arena;
    const { times: toTimes, values: toValues, forms: toForms } = into;
    const withTimes = what === "points";
    let segment = this.#segment;
    let offset = this.#offset;
    let copied = into.count;
    const end = copied + count;
    while (copied < end) {
      if (offset === segmentPoints) {
        segment = next[segment]!;
        offset = 0;
      }
      const base = segment * segmentPoints;
      for (; offset < segmentPoints && copied < end; offset++) {
        if (withTimes) toTimes[copied] = times[base + offset]!;
        toValues[copied] = values[base + offset]!;
        toForms[copied++] = forms[base + offset]!;
      }
    }
    this.#segment = segment;
    this.#offset = offset;
    into.count = end;
  }

  /** Bytes of the next values as text, where their times are those of `sought` in this range; −1 where they are not. */
  textAt(sought: Float64Array, from: number, to: number): number {
    const { times, forms, next } = this.#arena;
    let segment = this.#segment;
    let offset = this.#offset;
    let bytes = 0;
    for (let i = from; i < to; ) {
      if (offset === segmentPoints) {
        segment = next[segment]!;
        offset = 0;
      }
      const base = segment * segmentPoints;
      for (; offset < segmentPoints && i < to; offset++, i++) {
        if (times[base + offset] !== sought[i]) return -1;
        bytes += textLength(forms[base + offset]!);
      }
    }
    this.#segment = segment;
    this.#offset = offset;
    return bytes;
  }
}
