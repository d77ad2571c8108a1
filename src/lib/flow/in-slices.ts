// Splits long work on the event loop into slices, so that other tasks run in between.
import { setImmediate } from "node:timers/promises";

/** Work that yields the cost of each step. One unit is 10 to 20 ns, about the cost of copying a point. */
export type Steps<T> = Generator<number, T>;

/** Largest cost of a step. It keeps a slice from exceeding `sliceWork` by much. */
export const stepWork = 32_768;
/** Cost of a slice, after which other tasks run: a few milliseconds. */
export const sliceWork = 250_000;

/** Calls `part` for the elements from 0 to `count` in steps. `weight`: cost of an element, a divisor of `stepWork`. */
export function* inSteps(count: number, weight: number, part: (from: number, to: number) => void): Steps<void> {
  const perStep = stepWork / weight;
  for (let from = 0; from < count; from += perStep) {
    const to = Math.min(count, from + perStep);
    part(from, to);
    yield (to - from) * weight;
  }
}

/** Runs `work` to its end without a pause. */
export function atOnce<T>(work: Steps<T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

/** Runs `work` to its end and lets other tasks run between slices. */
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

/** Calls `work` for each item and lets other tasks run between slices. `weigh`: cost of an item. */
export async function forEachInSlices<T>(
  items: readonly T[],
  weigh: (item: T, at: number) => number,
  work: (item: T, at: number) => void,
): Promise<void> {
  let done = 0;
  // An iterator would allocate an object for each item.
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    work(item, i);
    done += weigh(item, i);
    if (done < sliceWork) continue;
    done = 0;
    await setImmediate();
  }
}
