// Where data from push-only libraries waits to be pulled. Never grows beyond its capacity.
import { orAbort } from "./abort.ts";

/** First in, first out, for one consumer. */
export class BoundedQueue<T> {
  readonly #capacity: number;
  #items: T[] = [];
  #failure: { readonly error: unknown } | undefined;
  #wake: PromiseWithResolvers<void> | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** False when it is full: the item was not taken, and what becomes of it is the caller's to decide and count. */
  offer(item: T): boolean {
    if (this.#items.length >= this.#capacity || this.#failure) return false;
    this.#items.push(item);
    this.#wake?.resolve();
    return true;
  }

  /** No more items will come. What waits is still handed out, then `takeAll` rejects with `error`. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake?.resolve();
  }

  /** Resolves with everything that waits, at most `max` and at least one. Rejects with the error of `fail` or with `signal.reason`. */
  async takeAll(max: number, signal: AbortSignal): Promise<T[]> {
    signal.throwIfAborted();
    while (this.#items.length === 0) {
      if (this.#failure) throw this.#failure.error;
      this.#wake = Promise.withResolvers();
      await orAbort(this.#wake.promise, signal);
    }
    return this.#items.length <= max ? this.#swap() : this.#items.splice(0, max);
  }

  #swap(): T[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }
}
