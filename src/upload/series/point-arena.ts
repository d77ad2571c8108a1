// Memory for points of many series, in columns: no object per point, nothing for the garbage collector, bounded.
//
// Points stand in segments of eight, one series each; segments of a series are chained. Eight doubles are one cache line,
// so walking a chain costs a miss per eight points, and a series of one point wastes seven slots. Memory that was never
// used is never touched, freed segments are used again first.
import type { Columns } from "./columns.ts";
import { textLength } from "./number-text.ts";

export const segmentPoints = 8;
export const noSegment = -1;
/** What a burst has touched beyond this is given back to the system once nothing is left in the arena: 2.2 MB are kept. */
const keptSegments = 131_072 / segmentPoints;

/** 17 bytes a point. The columns are replaced when it grows or empties: read them again after `allocate` and `free`. */
export class PointArena {
  times = new Float64Array();
  /** As `scaledNumber` gives them: see `forms`. */
  values = new Float64Array();
  /** `NumberForm` of each value. */
  forms = new Uint8Array();
  /** Segment → the one after it in its chain, `noSegment` at the end. */
  next = new Int32Array();
  readonly cursor = new ChainCursor(this, noSegment, 0);
  #freed = noSegment;
  #unused = 0;
  #allocated = 0;

  constructor(capacity: number) {
    this.#make(Math.ceil(capacity / segmentPoints));
  }

  get freeSegments(): number {
    return Math.max(0, this.next.length - this.#allocated);
  }

  /** A segment that ends its chain. Grows when none is left, which happens only if more was put in than was asked for. */
  allocate(): number {
    this.#allocated++;
    let segment = this.#freed;
    if (segment !== noSegment) this.#freed = this.next[segment]!;
    else {
      if (this.#unused === this.next.length) this.#grow();
      segment = this.#unused++;
    }
    this.next[segment] = noSegment;
    return segment;
  }

  free(segment: number): void {
    this.freeChain(segment, segment, 1);
  }

  /** Frees `segments` segments that are chained from `first` to `last`. */
  freeChain(first: number, last: number, segments: number): void {
    this.#allocated -= segments;
    this.next[last] = this.#freed;
    this.#freed = first;
    if (this.#allocated === 0 && this.#unused > keptSegments) this.#release();
  }

  /** Memory that was never touched is free, so the columns are made again as long as they were. */
  #release(): void {
    const segments = this.next.length;
    // At once: the garbage collector has no hurry while the agent idles, and would see both.
    for (const { buffer } of [this.times, this.values, this.forms, this.next]) buffer.transfer(0);
    this.#make(segments);
    this.#freed = noSegment;
    this.#unused = 0;
  }

  #grow(): void {
    const segments = Math.ceil(this.next.length * 1.25) + 1;
    const points = segments * segmentPoints;
    // One column after the other: the memory of one can be collected before the next one is made.
    this.times = copyInto(new Float64Array(points), this.times);
    this.values = copyInto(new Float64Array(points), this.values);
    this.forms = copyInto(new Uint8Array(points), this.forms);
    this.next = copyInto(new Int32Array(segments), this.next);
  }

  #make(segments: number): void {
    const points = segments * segmentPoints;
    this.times = new Float64Array(points);
    this.values = new Float64Array(points);
    this.forms = new Uint8Array(points);
    this.next = new Int32Array(segments);
  }
}

function copyInto<Column extends { set(from: Column): void }>(to: Column, from: Column): Column {
  to.set(from);
  return to;
}

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

  moveTo(segment: number, offset: number): this {
    this.#segment = segment;
    this.#offset = offset;
    return this;
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
