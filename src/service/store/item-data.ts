// Points of an item: those of its signals, merged. On equal times the signal that was created last wins.
import { parseRfcDuration } from "../../wire/rfc-duration.ts";
import { type BlockColumns, mergeColumns } from "./point-block.ts";
import type { ItemRecord } from "./resource.ts";
import type { ServiceStore } from "./store.ts";

/** By ascending time, from `from` to before `before`. */
export function* itemBlocks(store: ServiceStore, item: string, from: number, before: number): Generator<BlockColumns> {
  const [first, ...others] = store.resources.signalsOf(item);
  if (!first) return;
  if (others.length === 0) {
    yield* store.points.scan(first.number, from, before);
    return;
  }
  let merged = joinedBlocks(store.points.scan(first.number, from, before));
  for (const signal of others)
    merged = mergeColumns(merged, joinedBlocks(store.points.scan(signal.number, from, before)));
  yield merged;
}

/** One pair of columns for all of these. */
export function joinedBlocks(blocks: Iterable<BlockColumns>): BlockColumns {
  const all = [...blocks];
  const [only] = all;
  if (only && all.length === 1) return only;
  let length = 0;
  for (const { times } of all) length += times.length;
  const times = new Float64Array(length);
  const values = new Float64Array(length);
  let at = 0;
  for (const block of all) {
    times.set(block.times, at);
    values.set(block.values, at);
    at += block.times.length;
  }
  return { times, values };
}

/** How long a value of an item is known to hold, microseconds: its gap detection. */
export function holdOf({ attributes: { gapDetection } }: ItemRecord): number {
  return (gapDetection === null ? undefined : parseRfcDuration(gapDetection)?.micros) ?? Number.POSITIVE_INFINITY;
}
