// Memory for points of many series, in columns: no object per point, nothing for the garbage collector, bounded.
//
// Points stand in segments of eight, one series each; segments of a series are chained. Eight doubles are one cache line,
// so walking a chain costs a miss per eight points, and a series of one point wastes seven slots. Memory that was never
// used is never touched, freed segments are used again first.

export const segmentPoints = 8;
export const noSegment = -1;
/** What a burst has touched beyond this is given back to the system once nothing is left in the arena: 2.8 MB are kept. */
const keptSegments = 131_072 / segmentPoints;

/** 21 bytes a point. The columns are replaced when it grows or empties: read them anew after `allocate` and `free`. */
export class PointArena {
  times: Float64Array<ArrayBuffer>;
  /** As `scaledNumber` gives them: see `forms`. */
  values: Float64Array<ArrayBuffer>;
  /** `NumberForm` of each value. */
  forms: Uint8Array<ArrayBuffer>;
  /** Slot of the block that each point came in. */
  blocks: Uint32Array<ArrayBuffer>;
  /** Segment → the one after it in its chain, `noSegment` at the end. */
  next: Int32Array<ArrayBuffer>;
  #freed = noSegment;
  #unused = 0;
  #allocated = 0;

  constructor(capacity: number) {
    const segments = Math.ceil(capacity / segmentPoints);
    this.times = new Float64Array(segments * segmentPoints);
    this.values = new Float64Array(segments * segmentPoints);
    this.forms = new Uint8Array(segments * segmentPoints);
    this.blocks = new Uint32Array(segments * segmentPoints);
    this.next = new Int32Array(segments);
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
    this.#allocated--;
    this.next[segment] = this.#freed;
    this.#freed = segment;
    if (this.#allocated === 0 && this.#unused > keptSegments) this.#release();
  }

  /** Memory that was never touched is free, so the columns are made again as long as they were. */
  #release(): void {
    const segments = this.next.length;
    // At once: the garbage collector has no hurry while the agent idles, and would see both.
    for (const { buffer } of [this.times, this.values, this.forms, this.blocks, this.next]) buffer.transfer(0);
    this.times = new Float64Array(segments * segmentPoints);
    this.values = new Float64Array(segments * segmentPoints);
    this.forms = new Uint8Array(segments * segmentPoints);
    this.blocks = new Uint32Array(segments * segmentPoints);
    this.next = new Int32Array(segments);
    this.#freed = noSegment;
    this.#unused = 0;
  }

  #grow(): void {
    const segments = Math.ceil(this.next.length * 1.25) + 1;
    const points = segments * segmentPoints;
    const doubles = (from: Float64Array) => {
      const to = new Float64Array(points);
      to.set(from);
      return to;
    };
    this.times = doubles(this.times);
    this.values = doubles(this.values);
    const forms = new Uint8Array(points);
    forms.set(this.forms);
    this.forms = forms;
    const blocks = new Uint32Array(points);
    blocks.set(this.blocks);
    this.blocks = blocks;
    const next = new Int32Array(segments);
    next.set(this.next);
    this.next = next;
  }
}
