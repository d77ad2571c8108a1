// Memory for points of many series in columns: bounded, and without objects for the garbage collector.
//
// Points are in segments of eight, each of one series, and the segments of a series are chained. Eight doubles fill a
// cache line, so walking a chain costs one cache miss per eight points. A series with one point wastes seven slots.
// Unused memory is never touched, and freed segments are reused first.
import type { Columns } from "./columns.ts";
import { textLength } from "./number-text.ts";

export const segmentPoints = 8;
export const noSegment = -1;
/** Segments kept in memory (2.2 MB). More are released to the system once the arena is empty. */
const keptSegments = 131_072 / segmentPoints;

/** 17 bytes per point. `allocate` and `free` may replace the columns: read them again afterwards. */
export class PointArena {
  times = new Float64Array();
  /** As returned by `scaledNumber`: see `forms`. */
  values = new Float64Array();
  /** `NumberForm` of each value. */
  forms = new Uint8Array();
  /** Segment → next segment of its chain, or `noSegment`. */
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

  /** Returns a segment at the end of its chain. Grows if full, which only happens if callers exceed the capacity. */
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

  /** Frees a chain of `segments` segments from `first` to `last`. */
  freeChain(first: number, last: number, segments: number): void {
    this.#allocated -= segments;
    this.next[last] = this.#freed;
    this.#freed = first;
    if (this.#allocated === 0 && this.#unused > keptSegments) this.#release();
  }

  /** Recreates the columns with their length; untouched memory costs nothing. */
  #release(): void {
    const segments = this.next.length;
    // Releases the memory immediately, since the garbage collector may run late while the agent is idle.
    for (const { buffer } of [this.times, this.values, this.forms, this.next]) buffer.transfer(0);
    this.#make(segments);
    this.#freed = noSegment;
    this.#unused = 0;
  }

  #grow(): void {
    const segments = Math.ceil(this.next.length * 1.25) + 1;
    const points = segments * segmentPoints;
    // One column at a time, so that old memory can be collected in between.
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

/** A position in a chain of segments. Invalid after points were added or removed. */
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

  /** Appends the next `count` points to `into`, which must have capacity. With `values`, times are omitted. */
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

  /** Text bytes of the next values if their times equal `sought` in this range; −1 otherwise. */
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
