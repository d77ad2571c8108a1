// Which blocks the points of a queue came in, oldest first. Blocks are numbered in the order in which they were taken. A polled
// series has as many points in each of them, so that one run stands for many blocks:
//
//   blocks of the points   7 7 8 8 9 9 12      →      blocks 7 to 9 with 2 points each, block 12 with 1

/** `blocks` blocks, `first` and those that follow it, with `points` each. `last`: the queue holds no further point of them. */
export type BlockVisit = (first: number, blocks: number, points: number, last: boolean) => void;

/** First block, blocks, points of each, and how many points had ever come with its last one. */
const width = 4;
/** What a burst has left beyond this is given back when the queue is empty. */
const keptLength = 16 * width;

/** Never written to. */
const noRuns: number[] = [];

export class BlockRuns {
  /** Used from `#at` to `#end`. */
  #runs: number[] = noRuns;
  #at = 0;
  #end = 0;
  /** Points that ever came, and those of them that left. */
  #arrived = 0;
  #gone = 0;

  get arrived(): number {
    return this.#arrived;
  }

  /** Block of the oldest point. */
  get first(): number {
    return this.#at < this.#end ? this.#runs[this.#at]! : 0;
  }

  /** Points that came in the block of the oldest one and are still here. */
  get firstPoints(): number {
    return this.#at < this.#end ? this.#runs[this.#at + 2]! - this.#taken : 0;
  }

  /** Another point came in `block`. */
  add(block: number): void {
    const runs = this.#runs;
    this.#arrived++;
    const tail = this.#end - width;
    if (tail >= this.#at) {
      const blocks = runs[tail + 1]!;
      if (block !== runs[tail]! + blocks - 1) this.#join(tail);
      else if (blocks === 1) {
        runs[tail + 2]!++;
        runs[tail + 3]!++;
        return;
      } else {
        // It has more points than the blocks before it.
        const points = runs[tail + 2]!;
        runs[tail + 1] = blocks - 1;
        runs[tail + 3]! -= points;
        this.#push(block, points + 1);
        return;
      }
    }
    this.#push(block, 1);
  }

  /** The oldest `count` points leave. */
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

  /**
   * The most points, `count` at most, that end where a block ends: the next point came in another block, or there is none.
   * 0 when the oldest block has more than `count`.
   */
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

  /** Writes the block of each of the oldest points, as many as there is room for. */
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

  #push(block: number, points: number): void {
    const runs = this.#runs;
    const end = this.#end;
    this.#end = end + width;
    // Mostly there is one run, and an array that is appended to would keep room for 17 numbers.
    if (runs.length === 0) {
      this.#runs = [block, 1, points, this.#arrived];
      return;
    }
    runs[end] = block;
    runs[end + 1] = 1;
    runs[end + 2] = points;
    runs[end + 3] = this.#arrived;
  }

  /** The run at `tail` is complete: a single block goes to the run before it where it follows with as many points. */
  #join(tail: number): void {
    const runs = this.#runs;
    const before = tail - width;
    if (before < this.#at || runs[tail + 1] !== 1) return;
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
