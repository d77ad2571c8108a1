// Queue with a fixed capacity between a push-only library and a consumer that pulls.
import { HandOver } from "./hand-over.ts";

/** FIFO for one consumer. */
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

  /** False: the queue is full or failed, and the item was not taken. The caller must handle and count it. */
  offer(item: T): boolean {
    if (this.#items.length >= this.#capacity || this.#handOver.failed) return false;
    this.#items.push(item);
    this.#handOver.notify();
    return true;
  }

  fail(error: unknown): void {
    this.#handOver.fail(error);
  }

  /** Resolves with all waiting items, at least one and at most `max`. Rejects as `HandOver.take` does. */
  takeAll(max: number, signal: AbortSignal): Promise<T[]> {
    return this.#handOver.take(() => {
      if (this.#items.length > max) return this.#items.splice(0, max);
      const items = this.#items;
      this.#items = [];
      return items.length > 0 ? items : undefined;
    }, signal);
  }
}
