// A late point is not settled before the points that it may replace. Whenever the process dies, the newer value is sent
// last.
import { expect, test } from "vitest";
import { append, moment, openStore, type StoreSetup, settle, take, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const t0 = 1_767_225_600e6;

/** Leases `a` and `b` in one block, and a late `a` with the same time in the next block. */
function twoLeased(setup: StoreSetup = {}) {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, setup);
  append(store, [
    ["a", t0, 1],
    ["b", t0, 1],
  ]);
  const first = take(store, "live")!;
  append(store, [
    ["a", t0, 2],
    ["b", t0 + 1e6, 2],
  ]);
  const live = take(store, "live")!;
  const late = take(store, "backlog")!;
  expect([first, live, late].map(({ points }) => points.map(([input, , value]) => `${input} ${value}`))).toEqual([
    ["a 1", "b 1"],
    ["b 2"],
    ["a 2"],
  ]);
  return { disk, store, first, live, late };
}

test("after a kill a delivered late point is repeated after the point that it replaced", () => {
  const { disk, store, live, late } = twoLeased();
  settle(store, late);
  settle(store, live);

  const { store: again } = openStore(disk.afterKill(), { at: 1 });

  expect(takeAll(again)).toEqual([
    ["a", t0, 1],
    ["a", t0, 2],
    ["b", t0, 1],
  ]);
});

test("a late point is settled once the point that it replaced is settled", () => {
  const { disk, store, first, late } = twoLeased();
  settle(store, late);
  settle(store, first, ["a"]);
  store.tick(moment(1));

  const { store: again } = openStore(disk.afterKill(), { at: 2 });

  expect(takeAll(again)).toEqual([
    ["b", t0, 1],
    ["b", t0 + 1e6, 2],
  ]);
});

test("a delivered late point is delivered again when the point that it replaced is released", () => {
  const { store, first, late } = twoLeased();
  settle(store, late);

  store.release([first.id]);

  expect(takeAll(store)).toEqual([
    ["a", t0, 1],
    ["a", t0, 2],
    ["b", t0, 1],
  ]);
});

test("a late point whose delivery had no effect is delivered again when the rest of its block is settled", () => {
  const { store } = openStore(new MemoryDisk());
  append(store, [
    ["a", t0, 1],
    ["b", t0, 1],
    ["c", t0, 1],
  ]);
  const first = take(store, "live", 1e6, ["a", "c"])!;
  settle(store, take(store, "live")!);
  append(store, [
    ["a", t0, 2],
    ["b", t0, 2],
  ]);
  const late = take(store)!;
  settle(store, late, ["a"]);
  store.release([first.id]);
  const again = takeAll(store);

  settle(store, late, ["b"]);

  expect(again).toEqual([
    ["a", t0, 1],
    ["c", t0, 1],
  ]);
  expect(takeAll(store)).toEqual([["a", t0, 2]]);
});

test("a delivered late point does not count as lost when its segment is dropped", () => {
  const { store, first, live, late } = twoLeased({ maxAgeMs: 60_000 });
  settle(store, late);
  // The segment is sealed after part of `maxAge`, and dropped after all of it.
  store.tick(moment(10));
  store.tick(moment(75));

  store.release([first.id, live.id]);

  expect(store.stats()).toMatchObject({ settledPoints: 1, unsettledPoints: 0, losses: [{ points: 3 }] });
});
