// Waits that a signal ends, among them the wait of a consumer for the next item.
import type { Clock } from "../../core/runtime.ts";
import { systemClock } from "../time/clock.ts";

/** Settles as `promise` does, or rejects with `signal.reason` once `signal` aborts. `promise` itself continues. */
export function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Resolves when `signal` aborts. */
export function whenAborted(signal: AbortSignal): Promise<undefined> {
  return orAbort(new Promise<never>(() => {}), signal).catch(() => undefined);
}

/** Whether `error` results from the abort of `signal`. */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === "AbortError"));
}

/** A deadline for one call: aborts after `ms` or with `parent`. Dispose it when the call ends. */
export function deadline(
  ms: number,
  parent: AbortSignal,
  reason: () => unknown,
  clock: Pick<Clock, "sleep"> = systemClock(),
): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const ended = new AbortController();
  clock.sleep(ms, ended.signal).then(
    () => controller.abort(reason()),
    () => {},
  );
  const follow = () => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      ended.abort();
      parent.removeEventListener("abort", follow);
    },
  };
}

// Passing items from a producer that may fail to one consumer.

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
