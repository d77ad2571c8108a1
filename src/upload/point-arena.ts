// Memory for points of many series, in columns: no object per point, nothing for the garbage collector, bounded.
//
// Points stand in segments of eight, one series each; segments of a series are chained. Eight doubles are one cache line,
// so walking a chain costs a miss per eight points, and a series of one point wastes seven slots. Memory that was never
// used is never touched, freed segments are used again first.

export const segmentPoints = 8;
export const noSegment = -1;

/** 21 bytes a point. The columns are replaced when it grows: read them anew after `allocate`. */
export class PointArena {
  times: Float64Array;
  /** As `scaledNumber` gives them: see `forms`. */
  values: Float64Array;
  /** `NumberForm` of each value. */
  forms: Uint8Array;
  /** Slot of the block that each point came in. */
  blocks: Uint32Array;
  /** Segment → the one after it in its chain, `noSegment` at the end. */
  next: Int32Array;
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
