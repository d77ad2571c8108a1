// The distinct times of a frame while it is being planned.

const empty = Number.NaN;

/** A set of numbers with the order in which they came. Open addressing, at most half full; memory is used again. */
export class RowSet {
  #slots = new Float64Array(4_096).fill(empty);
  #rows = new Float64Array(2_048);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  clear(): void {
    // One at a time would leave holes in the chains of those that are still to be found.
    if (this.#count > 0) this.#slots.fill(empty);
    this.#count = 0;
  }

  has(time: number): boolean {
    return this.#slots[this.#find(time)] === time;
  }

  /** False when it was there already. */
  add(time: number): boolean {
    const slot = this.#find(time);
    if (this.#slots[slot] === time) return false;
    if (this.#count === this.#rows.length) {
      this.#grow();
      this.#slots[this.#find(time)] = time;
    } else this.#slots[slot] = time;
    this.#rows[this.#count++] = time;
    return true;
  }

  /** A copy, by ascending time. */
  sorted(): Float64Array {
    const rows = this.#rows.slice(0, this.#count);
    for (let i = 1; i < rows.length; i++) if (rows[i]! < rows[i - 1]!) return rows.sort();
    return rows;
  }

  /** The slot of `time`, or the free one where it would go. */
  #find(time: number): number {
    const mask = this.#slots.length - 1;
    const low = (time % 0x1_0000_0000) | 0;
    let slot = Math.imul(low ^ ((time / 0x1_0000_0000) | 0), 0x9e3779b1);
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const found = this.#slots[slot]!;
      if (found === time || found !== found) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const rows = new Float64Array(this.#rows.length * 2);
    rows.set(this.#rows);
    this.#rows = rows;
    this.#slots = new Float64Array(this.#slots.length * 2).fill(empty);
    for (let i = 0; i < this.#count; i++) this.#slots[this.#find(rows[i]!)] = rows[i]!;
  }
}
