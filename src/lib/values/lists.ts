// Lists: where a value stands in an ascending one, and lists that are usually the same each time.

/** Index of the first of the ascending `values`, from `from` on, that is at least `value`; their number if none is. */
export function lowerBound(values: Uint32Array | Float64Array, value: number, from = 0): number {
  let low = from;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Lists of thousands of items that are usually the same each second, such as the inputs of a poll.

/**
 * Builds one list after the other. A list equal to the one before is that same object, so that nothing is allocated and
 * others can cache by identity. The lists must not be changed.
 */
export class RepeatedList<T> {
  #last: readonly T[] = [];
  /** Items of the new list. Undefined: they are the first ones of `#last` so far. */
  #own: T[] | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(item: T): void {
    const at = this.#length++;
    if (!this.#own) {
      if (at < this.#last.length && this.#last[at] === item) return;
      this.#own = this.#last.slice(0, at);
    }
    this.#own.push(item);
  }

  /** Ends the list and begins the next one. */
  take(): readonly T[] {
    if (this.#own) this.#last = this.#own;
    else if (this.#length < this.#last.length) this.#last = this.#last.slice(0, this.#length);
    this.#own = undefined;
    this.#length = 0;
    return this.#last;
  }
}
