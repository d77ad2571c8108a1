// Waiting for what another part of the program delivers, until that part has failed.
import { orAbort } from "./abort.ts";

/** For one consumer. What is delivered stays with the owner, which knows how much may wait and in what form. */
export class HandOver {
  #failure: { readonly error: unknown } | undefined;
  #wake: PromiseWithResolvers<void> | undefined;

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  notify(): void {
    this.#wake?.resolve();
  }

  /** Nothing more will be delivered; what was is still taken, then `take` rejects with `error`. The first error counts. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.notify();
  }

  /**
   * Resolves with the first value of `takeNow` that is not undefined; it is called at once and after each `notify`. Rejects
   * with the error of `fail` when there is none, or with `signal.reason`.
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
