// Where polled readings wait for the buffer. The field is not made to wait: when too much waits, the oldest is dropped,
// counted, and told to each tag that it concerns.
import type { Reading, TagId } from "../../../core/source.ts";
import { HandOver } from "../../../lib/hand-over.ts";

export class ReadingsQueue {
  readonly #capacity: number;
  readonly #handOver = new HandOver();
  #cycles: (readonly Reading[])[] = [];
  #size = 0;
  /** By tag: the last reading that was dropped, and how many were. Bounded by the number of tags. */
  #dropped = new Map<TagId, { readonly last: Reading; readonly count: number }>();

  /** `capacity` in readings. A single cycle may exceed it. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes the readings of a cycle. Gives how many older ones were dropped to make room. */
  offer(cycle: readonly Reading[]): number {
    if (this.#handOver.failed || cycle.length === 0) return 0;
    let dropped = 0;
    while (this.#cycles.length > 0 && this.#size + cycle.length > this.#capacity) {
      const oldest = this.#cycles.shift() ?? [];
      this.#size -= oldest.length;
      dropped += oldest.length;
      for (const last of oldest)
        this.#dropped.set(last.tag, { last, count: (this.#dropped.get(last.tag)?.count ?? 0) + 1 });
    }
    this.#cycles.push(cycle);
    this.#size += cycle.length;
    this.#handOver.notify();
    return dropped;
  }

  /** As `HandOver.fail`. */
  fail(error: unknown): void {
    this.#handOver.fail(error);
  }

  /**
   * Resolves with what waits: whole cycles, about `max` readings, at least one. Readings that were dropped come first,
   * as one bad reading for each tag. Rejects as `HandOver.take` does.
   */
  take(max: number, signal: AbortSignal): Promise<readonly Reading[]> {
    return this.#handOver.take(() => this.#takeNow(max), signal);
  }

  #takeNow(max: number): readonly Reading[] | undefined {
    if (this.#cycles.length === 0) return undefined;
    const readings: Reading[] = [...this.#dropped.values()].map(({ last, count }) => ({
      ...last,
      value: undefined,
      quality: "bad",
      reason: `${count} readings were dropped: the buffer did not take them in time`,
    }));
    this.#dropped = new Map();
    do {
      const cycle = this.#cycles.shift() ?? [];
      this.#size -= cycle.length;
      for (const reading of cycle) readings.push(reading);
    } while (this.#cycles.length > 0 && readings.length + (this.#cycles[0]?.length ?? 0) <= max);
    return readings;
  }
}
