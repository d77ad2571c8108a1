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
