// Where data from push-only libraries waits to be pulled. Never grows beyond its capacity.
import { HandOver } from "./hand-over.ts";

/** First in, first out, for one consumer. */
export class BoundedQueue<T> {
  readonly #capacity: number;
  readonly #handOver = new HandOver();
  #items: T[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** False when it is full: the item was not taken, and what becomes of it is the caller's to decide and count. */
  offer(item: T): boolean {
    if (this.#items.length >= this.#capacity || this.#handOver.failed) return false;
    this.#items.push(item);
    this.#handOver.notify();
    return true;
  }

  /** As `HandOver.fail`. */
  fail(error: unknown): void {
    this.#handOver.fail(error);
  }

  /** Resolves with everything that waits, at most `max` and at least one. Rejects as `HandOver.take` does. */
  takeAll(max: number, signal: AbortSignal): Promise<T[]> {
    return this.#handOver.take(() => {
      if (this.#items.length > max) return this.#items.splice(0, max);
      const items = this.#items;
      this.#items = [];
      return items.length > 0 ? items : undefined;
    }, signal);
  }
}
