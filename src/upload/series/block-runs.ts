// Run-length encoding of the blocks of a queue's points, oldest first. Blocks are numbered in the order of their
// leases. A polled series has equally many points in each, so one run covers many blocks:
//
//   blocks of the points   7 7 8 8 9 9 12      →      blocks 7 to 9 with 2 points each, block 12 with 1

/** `blocks` consecutive blocks from `first`, with `points` each. `last`: the queue holds no further point of them. */
export type BlockVisit = (first: number, blocks: number, points: number, last: boolean) => void;

/** Elements per run: first block, number of blocks, points per block, and total arrivals up to its end. */
const width = 4;
/** Capacity beyond this is released when the queue is empty. */
const keptLength = 16 * width;

/** Shared; never written to. */
const noRuns: number[] = [];

export class BlockRuns {
  /** Used from `#at` to `#end`. */
  #runs: number[] = noRuns;
  #at = 0;
  #end = 0;
  /** Total points that arrived, and that left. */
  #arrived = 0;
  #gone = 0;

  get arrived(): number {
    return this.#arrived;
  }

  get first(): number {
    return this.#at < this.#end ? this.#runs[this.#at]! : 0;
  }

  /** Remaining points of the oldest block. */
  get firstPoints(): number {
    return this.#at < this.#end ? this.#runs[this.#at + 2]! - this.#taken : 0;
  }

  add(block: number): void {
    const runs = this.#runs;
    this.#arrived++;
    const tail = this.#end - width;
    if (tail >= this.#at) {
      // The last run has one block, because runs are joined when the next block begins.
      if (block === runs[tail]) {
        runs[tail + 2]!++;
        runs[tail + 3]!++;
        return;
      }
      this.#join(tail);
    }
    this.#push(block);
  }

  drop(count: number, visit: BlockVisit): void {
    const runs = this.#runs;
    for (let left = count; left > 0; ) {
      const at = this.#at;
      const first = runs[at]!;
      const blocks = runs[at + 1]!;
      const points = runs[at + 2]!;
      const taken = this.#taken;
      if (left < points - taken) {
        this.#gone += left;
        visit(first, 1, left, false);
        return;
      }
      const whole = taken > 0 ? 1 : Math.min(blocks, Math.floor(left / points));
      const each = points - taken;
      runs[at] = first + whole;
      runs[at + 1] = blocks - whole;
      if (whole === blocks) this.#at += width;
      this.#gone += whole * each;
      left -= whole * each;
      visit(first, whole, each, true);
    }
    this.#compact();
  }

  /** The largest number of points up to `count` that ends at a block boundary. 0: the oldest block has more points. */
  whole(count: number): number {
    const runs = this.#runs;
    const upTo = this.#gone + count;
    let low = this.#at / width;
    let high = this.#end / width;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (runs[middle * width + 3]! <= upTo) low = middle + 1;
      else high = middle;
    }
    const at = low * width;
    if (at === this.#end) return this.#arrived - this.#gone;
    const points = runs[at + 2]!;
    const begin = runs[at + 3]! - runs[at + 1]! * points;
    return Math.max(0, begin + Math.floor((upTo - begin) / points) * points - this.#gone);
  }

  /** Writes the block of each of the oldest points, as many as `into` can hold. */
  fill(into: Float64Array): void {
    const runs = this.#runs;
    let skipped = this.#taken;
    let filled = 0;
    for (let at = this.#at; at < this.#end && filled < into.length; at += width)
      for (let block = 0; block < runs[at + 1]! && filled < into.length; block++) {
        const to = filled + runs[at + 2]! - skipped;
        into.fill(runs[at]! + block, filled, to);
        filled = to;
        skipped = 0;
      }
  }

  /** Points of the oldest block that left. */
  get #taken(): number {
    const runs = this.#runs;
    const at = this.#at;
    return this.#gone - runs[at + 3]! + runs[at + 1]! * runs[at + 2]!;
  }

  #push(block: number): void {
    const runs = this.#runs;
    const end = this.#end;
    this.#end = end + width;
    // Usually there is one run, and a growing array would reserve memory for 17 numbers.
    if (runs.length === 0) {
      this.#runs = [block, 1, 1, this.#arrived];
      return;
    }
    runs[end] = block;
    runs[end + 1] = 1;
    runs[end + 2] = 1;
    runs[end + 3] = this.#arrived;
  }

  /** Merges a completed single-block run into the previous one if it continues it. */
  #join(tail: number): void {
    const runs = this.#runs;
    const before = tail - width;
    if (before < this.#at) return;
    if (runs[before + 2] !== runs[tail + 2] || runs[before]! + runs[before + 1]! !== runs[tail]) return;
    runs[before + 1]!++;
    runs[before + 3] = runs[tail + 3]!;
    this.#end = tail;
  }

  #compact(): void {
    if (this.#at === this.#end) {
      if (this.#runs.length > keptLength) this.#runs = noRuns;
      this.#at = 0;
      this.#end = 0;
    } else if (this.#at > this.#end / 2) {
      this.#runs = this.#runs.slice(this.#at, this.#end);
      this.#end -= this.#at;
      this.#at = 0;
    }
  }
}
