// Memory for points, in columns: of many series while they wait, and of one series for packer and writer.
import { inSteps, type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { textLength } from "./number-text.ts";

/** Columns of equal capacity, of which the first `count` elements are used. */
export class Columns {
  times: Float64Array<ArrayBuffer>;
  /** As returned by `scaledNumber`. */
  values: Float64Array<ArrayBuffer>;
  forms: Uint8Array<ArrayBuffer>;
  count = 0;

  constructor(capacity = 1_024) {
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
    this.forms = new Uint8Array(capacity);
  }

  /** Ensures capacity for `count` points; discards the content. */
  reserve(count: number): void {
    this.count = 0;
    if (count <= this.times.length) return;
    const capacity = Math.ceil(count * 1.25);
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
    this.forms = new Uint8Array(capacity);
  }

  /** Sorts by time. Of equal times, only the last point is kept, as storing them in order would. */
  *sort(): Steps<void> {
    const { times, values, forms, count } = this;
    const order = yield* mergeOrder(times, count);
    const sorted = new Columns(times.length);
    yield* inSteps(count, 1, (from, to) => {
      for (let i = from; i < to; i++) {
        const at = order[i]!;
        if (i + 1 < count && times[order[i + 1]!] === times[at]) continue;
        sorted.times[sorted.count] = times[at]!;
        sorted.values[sorted.count] = values[at]!;
        sorted.forms[sorted.count++] = forms[at]!;
      }
    });
    Object.assign(this, sorted);
  }
}

/** Cost of comparing two numbers by index and copying one. */
const workOfEach = 2;
const perStep = stepWork / workOfEach;

interface Merge {
  /** Next index of the left run and of the right one, and the output position. */
  left: number;
  right: number;
  at: number;
}

/** Natural merge sort, stable: indices of the first `count` `keys` in ascending order. */
export function* mergeOrder(keys: Float64Array, count: number): Steps<Uint32Array> {
  let from = new Uint32Array(count);
  let starts = count > 0 ? [0] : [];
  for (let start = 1; start < count; start += stepWork) {
    const stop = Math.min(count, start + stepWork);
    for (let i = start; i < stop; i++) {
      from[i] = i;
      if (keys[i]! < keys[i - 1]!) starts.push(i);
    }
    yield stop - start;
  }
  let to = new Uint32Array(starts.length > 1 ? count : 0);
  while (starts.length > 1) {
    const merged: number[] = [];
    for (let run = 0; run < starts.length; run += 2) {
      const left = starts[run]!;
      const middle = starts[run + 1] ?? count;
      const end = starts[run + 2] ?? count;
      const merge = { left, right: middle, at: left };
      while (merge.at < end) {
        const begun = merge.at;
        mergeUpTo(Math.min(end, begun + perStep), merge, keys, from, to, middle, end);
        yield (merge.at - begun) * workOfEach;
      }
      merged.push(left);
    }
    starts = merged;
    [from, to] = [to, from];
  }
  return from;
}

function mergeUpTo(
  stop: number,
  merge: Merge,
  keys: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  middle: number,
  end: number,
): void {
  let { left, right, at } = merge;
  for (; at < stop; at++)
    to[at] =
      left < middle && (right >= end || keys[from[left]!]! <= keys[from[right]!]!) ? from[left++]! : from[right++]!;
  merge.left = left;
  merge.right = right;
  merge.at = at;
}

// The arena is bounded and has no objects for the garbage collector. Points are in segments of eight, each of one series,
// and the segments of a series are chained. Eight doubles fill a cache line, so walking a chain costs one cache miss per
// eight points. A series with one point wastes seven slots. Unused memory is never touched, and freed segments are reused
// first.

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

  /** Appends `count` points of a chain to `into`, which must have capacity. With `values`, times are omitted. */
  copy(first: number, firstOffset: number, count: number, into: Columns, what: "points" | "values"): Columns {
    const { times, values, forms, next } = this;
    const { times: toTimes, values: toValues, forms: toForms } = into;
    const withTimes = what === "points";
    let segment = first;
    let offset = firstOffset;
    let copied = into.count;
    const end = copied + count;
    while (copied < end) {
      const base = segment * segmentPoints;
      for (; offset < segmentPoints && copied < end; offset++) {
        if (withTimes) toTimes[copied] = times[base + offset]!;
        toValues[copied] = values[base + offset]!;
        toForms[copied++] = forms[base + offset]!;
      }
      segment = next[segment]!;
      offset = 0;
    }
    into.count = end;
    return into;
  }

  /** Text bytes of `count` values of a chain if their times equal `sought`; undefined otherwise. */
  textBytesAt(first: number, firstOffset: number, count: number, sought: Float64Array): number | undefined {
    const { times, forms, next } = this;
    let segment = first;
    let offset = firstOffset;
    let bytes = 0;
    for (let i = 0; i < count; ) {
      const base = segment * segmentPoints;
      for (; offset < segmentPoints && i < count; offset++, i++) {
        if (times[base + offset] !== sought[i]) return undefined;
        bytes += textLength(forms[base + offset]!);
      }
      segment = next[segment]!;
      offset = 0;
    }
    return bytes;
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
