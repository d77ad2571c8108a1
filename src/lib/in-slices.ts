// Long work on the event loop, cut into slices so that others run in between.
import { setImmediate } from "node:timers/promises";

/** Work that says with each step how much it was, where 1 takes 10 to 20 ns: about as much as copying a point. */
export type Steps<T> = Generator<number, T>;

/** Steps are no larger than this, so that a slice is not much longer than it has to be. */
export const stepWork = 32_768;
/** How much is done before others run: a few milliseconds. */
export const sliceWork = 250_000;

/** Runs work to its end, letting others run in between. */
export async function inSlices<T>(work: Steps<T>): Promise<T> {
  let done = 0;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    done += step.value;
    if (done < sliceWork) continue;
    done = 0;
    await setImmediate();
  }
}

/** Calls `work` for each item; lets others run in between. `weigh`: how much an item is. */
export async function forEachInSlices<T>(
  items: readonly T[],
  weigh: (item: T) => number,
  work: (item: T) => void,
): Promise<void> {
  let done = 0;
  // An iterator would make an object for each.
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    work(item);
    done += weigh(item);
    if (done < sliceWork) continue;
    done = 0;
    await setImmediate();
  }
}
