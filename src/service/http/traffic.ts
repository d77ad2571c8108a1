// Counts what clients send, by method, so that tests and operators can prove that a client keeps to its rate.

export interface MethodTraffic {
  readonly requests: number;
  /** Bytes of request bodies, as JSON. */
  readonly bytes: number;
  /** Milliseconds between the two starts that were closest; infinite while there are fewer than two. */
  readonly smallestSpacingMs: number;
  /** The most starts in any 1.000 s. */
  readonly maxStartsPerSecond: number;
}

export class Traffic {
  readonly #tallies = new Map<string, Tally>();

  /** `start` is when the headers of the request were read, in milliseconds of the monotonic clock. */
  record(method: string, start: number, bytes: number): void {
    let tally = this.#tallies.get(method);
    if (!tally) this.#tallies.set(method, (tally = new Tally()));
    tally.record(start, bytes);
  }

  /** By canonical method name. */
  counters(): ReadonlyMap<string, MethodTraffic> {
    return new Map([...this.#tallies].map(([method, tally]) => [method, tally.snapshot()]));
  }
}

class Tally {
  #requests = 0;
  #bytes = 0;
  #smallestSpacingMs = Number.POSITIVE_INFINITY;
  #maxStartsPerSecond = 0;
  /** Ascending; of the last `keepMs` at least. */
  #starts: number[] = [];
  /** Index of the first start less than a second before the last. */
  #window = 0;

  record(start: number, bytes: number): void {
    this.#requests++;
    this.#bytes += bytes;
    const starts = this.#starts;
    const last = starts.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (start >= last) {
      starts.push(start);
      this.#near(start - last);
      while (start - starts[this.#window]! >= 1_000) this.#window++;
      this.#dense(starts.length - this.#window);
      this.#forget(start - keepMs);
    } else this.#insert(start);
  }

  snapshot(): MethodTraffic {
    return {
      requests: this.#requests,
      bytes: this.#bytes,
      smallestSpacingMs: this.#smallestSpacingMs,
      maxStartsPerSecond: this.#maxStartsPerSecond,
    };
  }

  /** A request with a large body is complete after a small one that started later. */
  #insert(start: number): void {
    const starts = this.#starts;
    const at = starts.findLastIndex((other) => other <= start) + 1;
    if (at > 0) this.#near(start - starts[at - 1]!);
    this.#near(starts[at]! - start);
    starts.splice(at, 0, start);
    if (at <= this.#window) this.#window++;
    for (let first = at; first >= 0 && start - starts[first]! < 1_000; first--) {
      let end = at;
      while (end < starts.length && starts[end]! - starts[first]! < 1_000) end++;
      this.#dense(end - first);
    }
    while (this.#window > 0 && starts.at(-1)! - starts[this.#window - 1]! < 1_000) this.#window--;
  }

  #near(spacingMs: number): void {
    this.#smallestSpacingMs = Math.min(this.#smallestSpacingMs, spacingMs);
  }

  #dense(starts: number): void {
    this.#maxStartsPerSecond = Math.max(this.#maxStartsPerSecond, starts);
  }

  #forget(before: number): void {
    if (this.#starts.length < 1_024 || this.#starts[this.#starts.length >>> 1]! >= before) return;
    const gone = this.#starts.findIndex((start) => start >= before);
    this.#starts = this.#starts.slice(gone);
    this.#window -= gone;
  }
}

/** A body may take this long to arrive after its headers; starts older than that can no longer be joined. */
const keepMs = 60_000;
