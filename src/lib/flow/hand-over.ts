// Wait for items from a producer that may fail.
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
