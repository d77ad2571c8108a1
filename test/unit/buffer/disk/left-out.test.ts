// Series that one block omitted and another block contained.
import { expect, test } from "vitest";
import { append, openStore, settle, take, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const points = [
  ["a", 10, 1],
  ["b", 10, 2],
  ["c", 10, 3],
] as const;

function leasedApart() {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, points);
  const others = take(store, "backlog", 1e6, undefined, ["a"])!;
  const left = take(store)!;
  expect([others.points.length, left.points]).toEqual([2, [points[0]]]);
  return { disk, store, others, left };
}

test("the settled part of a series stays settled when a block without it is settled", () => {
  const { disk, store, others, left } = leasedApart();
  append(store, [["d", 20, 4]]);
  settle(store, left);
  // One series stays unsettled, because a fully settled record is noted as a whole.
  settle(store, others, ["b"]);
  expect(store.stats()).toMatchObject({ settledPoints: 2, unsettledPoints: 2 });

  const after = openStore(disk.afterKill());
  expect(takeAll(after.store)).toEqual([points[2], ["d", 20, 4]]);
  expect(after.store.stats()).toMatchObject({ settledPoints: 2, unsettledPoints: 2 });
});

test("a leased series is not leased again when a block without it is released", () => {
  const { store, others, left } = leasedApart();
  store.release([others.id]);

  expect(takeAll(store)).toEqual(points.slice(1));
  settle(store, left);
  expect(store.stats()).toMatchObject({ settledPoints: 1, unsettledPoints: 2 });
});
