// Long work on the event loop, cut into slices so that others run in between.
import { setImmediate } from "node:timers/promises";

/** Runs work that yields after each slice to its end, letting others run in between. */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

/** Calls `work` for each item; lets others run when what `weigh` says of them has come to `perSlice`. */
export async function forEachInSlices<T>(
  items: Iterable<T>,
  { perSlice, weigh }: { readonly perSlice: number; readonly weigh: (item: T) => number },
  work: (item: T) => void,
): Promise<void> {
  let weight = 0;
  for (const item of items) {
    work(item);
    weight += weigh(item);
    if (weight < perSlice) continue;
    weight = 0;
    await setImmediate();
  }
}
