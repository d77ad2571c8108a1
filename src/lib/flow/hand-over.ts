// Passing items from a producer that may fail to one consumer.
import { orAbort } from "./abort.ts";

/** For one consumer. The owner stores the items and decides how many may wait. */
export class HandOver {
  #failure: { readonly error: unknown } | undefined;
  #wake: PromiseWithResolvers<void> | undefined;

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  notify(): void {
    this.#wake?.resolve();
  }

  /** No more items follow. `take` returns the present ones, then rejects with `error`. Only the first error counts. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.notify();
  }

  /**
   * Resolves with the first value of `takeNow` that is not undefined. Calls `takeNow` immediately and after each
   * `notify`. Rejects with the error of `fail` once no value is left, or with `signal.reason`.
   */
  async take<T>(takeNow: () => T | undefined, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    for (;;) {
      const taken = takeNow();
      if (taken !== undefined) return taken;
      if (this.#failure) throw this.#failure.error;
      this.#wake = Promise.withResolvers();
      await orAbort(this.#wake.promise, signal);
    }
  }
}

// Queue with a fixed capacity between a push-only library and a consumer that pulls.

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
