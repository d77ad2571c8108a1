// The points of an item that merges several signals, and how many of them are in memory at a time.
import { expect, test } from "vitest";
import type { Attributes } from "../../../src/service/store/resource-store.ts";
import { ServiceStore } from "../../../src/service/store/store.ts";
import { itemSaveView } from "../../../src/wire/signal-view.ts";

const attributes: Attributes = itemSaveView.parse({ name: "level", type: "numeric", sourceType: "measurement" });

/** An item with a signal for each entry: first time, spacing and number of points. */
function itemOf(store: ServiceStore, signals: readonly (readonly [from: number, step: number, count: number])[]) {
  return store.transaction(() => {
    const item = store.resources.createItem(attributes, true, 0);
    for (const [index, [from, step, count]] of signals.entries()) {
      const signal = store.resources.createSignal("c8ktonqsahsmemfs7lv0", `s${index}`, attributes, 0);
      store.resources.updateSignal({ ...signal, item: item.id });
      const times = Float64Array.from({ length: count }, (_, i) => from + i * step);
      store.points.write(signal.number, { times, values: new Float64Array(count).fill(index) });
    }
    return item.id;
  });
}

test("points of several signals are merged in parts, however many there are", () => {
  using store = ServiceStore.open(":memory:");
  const signals = [
    [0, 2, 150_000],
    [100_000, 3, 60_000],
    [-5_000, 1_000, 400],
    [250_000, 1, 90_000],
  ] as const;
  const item = itemOf(store, signals);
  const [from, before] = [-2_000, 320_000];
  const expected = new Map<number, number>();
  for (const [index, [first, step, count]] of signals.entries())
    for (let i = 0; i < count; i++) expected.set(first + i * step, index);
  const inside = [...expected].filter(([time]) => time >= from && time < before).toSorted(([a], [b]) => a - b);
  const parts = [...store.blocksOf(item, from, before)];
  expect(Float64Array.from(parts.flatMap(({ times }) => [...times]))).toEqual(
    Float64Array.from(inside, ([time]) => time),
  );
  expect(Float64Array.from(parts.flatMap(({ values }) => [...values]))).toEqual(
    Float64Array.from(inside, ([, value]) => value),
  );
  expect(Math.max(...parts.map(({ times }) => times.length))).toBeLessThanOrEqual(131_072);
});
