// A volume that the buffer itself or other programs fill: which points are kept, which are dropped, and when.
import { describe, expect, test, vi } from "vitest";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const t0 = 1_767_225_600_000_000;
/** Irrational values of three tags, which take 8 bytes each. */
const values = (ticks: number, first = 0): Triple[] =>
  Array.from({ length: ticks }, (_, i) =>
    ["a", "b", "c"].map((input, k): Triple => [input, t0 + (first + i) * 1e6, Math.sqrt((first + i) * 10 + k)]),
  ).flat();
const unavailable = expect.objectContaining({ code: "BUFFER_UNAVAILABLE" });
type Opened = ReturnType<typeof openStore>["store"];

/** Appends ten ticks at a time until the volume is full. Returns the number of ticks that were stored. */
function fill(store: Opened, first = 0, at = 0): number {
  for (let next = first; next < 100_000; next += 10)
    try {
      append(store, values(10, next), at);
    } catch (error) {
      expect(error).toEqual(unavailable);
      return next;
    }
  throw new Error("it never was full");
}

/** A file of another program. It takes all free space, and on request also the space that removals free. */
function eater(disk: MemoryDisk) {
  const file = disk.open("/data/others", "create");
  let used = 0;
  const eat = () => {
    for (let free = disk.free(folder); free > 0; free = disk.free(folder)) {
      const count = file.write(new Uint8Array(free).fill(1), used);
      used += count;
    }
  };
  return {
    eat,
    goAway: () => {
      disk.remove("/data/others");
    },
    /** Takes the space of removed segments before the buffer can use it. */
    lurk: () => {
      const remove = disk.remove.bind(disk);
      disk.remove = (path) => {
        remove(path);
        if (path.includes("/seg-")) eat();
      };
    },
  };
}

function expectBooksToBalance(store: Opened) {
  const { appendedPoints, settledPoints, refusedPoints, unsettledPoints, losses } = store.stats();
  const lost = losses.reduce((sum, loss) => sum + loss.points, 0);
  expect(settledPoints + refusedPoints + unsettledPoints + lost).toBe(appendedPoints);
}

describe.each(["ENOSPC", "EDQUOT"])("%s that others cause", (code) => {
  test("for a minute nothing is dropped and nothing acknowledged, and stored points are delivered", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk, { segmentBytes: 20_000 });
    for (let i = 0; i < 10; i++) append(store, values(100, i * 100));
    disk.fault = (call, path) => {
      if (["write", "open"].includes(call) && !path.includes("state-")) throw failure(code, path);
      return undefined;
    };

    for (let at = 1; at <= 60; at += 2) {
      expect(() => append(store, values(1, 9_000), at)).toThrow(unavailable);
      store.tick(moment(at + 1));
      expect(store.stats()).toMatchObject({ appendedPoints: 3_000, unsettledPoints: 3_000, losses: [] });
      expect(store.stats().degraded).toContain(code);
    }
  });
});

test("the first failure after a minute drops one segment, and no further one if that frees no space", () => {
  const disk = new MemoryDisk({ capacity: 200_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  for (let i = 0; i < 60; i++) append(store, values(100, i * 100));
  const others = eater(disk);
  others.eat();
  others.lurk();
  expect(store.stats().segments).toBeGreaterThan(3);

  const next = fill(store, 6_000, 1);
  const { unsettledPoints } = store.stats();
  expect(() => append(store, values(10, next), 60.9)).toThrow(unavailable);
  expect(store.stats()).toMatchObject({ losses: [], unsettledPoints });

  const { segments } = store.stats();
  for (let at = 61; at < 2_000; at += 5) {
    expect(() => append(store, values(10, next), at)).toThrow(unavailable);
    store.tick(moment(at + 2));
  }

  const after = store.stats();
  expect(after.losses).toMatchObject([{ reason: "diskFull", from: t0 }]);
  expect(after.segments).toBeGreaterThanOrEqual(segments - 2);
  expect(after.unsettledPoints).toBeGreaterThan(unsettledPoints / 2);
  expect(after.degraded).toContain("ENOSPC");
  expectBooksToBalance(store);
});

test("when other programs soon take the space that a drop freed, no more is dropped", () => {
  const disk = new MemoryDisk({ capacity: 200_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  for (let i = 0; i < 60; i++) append(store, values(100, i * 100));
  const others = eater(disk);
  others.eat();
  let next = fill(store, 6_000, 1);

  append(store, values(1, next++), 62);
  const [loss] = store.stats().losses;
  expect(loss).toMatchObject({ reason: "diskFull" });
  others.eat();
  next = fill(store, next, 63);
  for (let at = 64; at < 1_000; at += 5) {
    expect(() => append(store, values(10, next), at)).toThrow(unavailable);
    store.tick(moment(at + 2));
  }

  expect(store.stats().losses).toEqual([loss]);
  expectBooksToBalance(store);
});

test("when drops let points in, the oldest segments are dropped at once, as in a ring buffer", () => {
  const disk = new MemoryDisk({ capacity: 100_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  let next = fill(store);
  expect(store.stats().losses).toEqual([]);

  for (let i = 0; i < 100; i++, next += 10) append(store, values(10, next), 61);

  const { losses, appendedPoints, unsettledPoints } = store.stats();
  expect(appendedPoints).toBe(next * 3);
  expect(losses).toEqual([
    {
      reason: "diskFull",
      points: appendedPoints - unsettledPoints,
      from: t0,
      to: expect.any(Number),
      intervals: [expect.objectContaining({ from: t0 })],
    },
  ]);
  const kept = takeAll(store).toSorted((x, y) => x[1] - y[1]);
  expect(kept).toHaveLength(unsettledPoints);
  expect(losses[0]?.to).toBeLessThan(kept[0]![1]);
  expectBooksToBalance(store);
});

test("the buffer recovers at the next tick after space is free, and the next full disk has a grace period of its own", () => {
  const disk = new MemoryDisk({ capacity: 300_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  for (let i = 0; i < 60; i++) append(store, values(100, i * 100));
  const first = eater(disk);
  first.eat();
  let next = fill(store, 6_000, 1);
  store.tick(moment(30));
  expect(store.stats().degraded).toContain("ENOSPC");

  first.goAway();
  store.tick(moment(40));
  expect(store.stats().degraded).toBeUndefined();
  eater(disk).eat();
  next = fill(store, next, 90);
  expect(() => append(store, values(10, next), 149)).toThrow(unavailable);
  expect(store.stats().losses).toEqual([]);
  append(store, values(1, next), 151);
  expect(store.stats().losses).toMatchObject([{ reason: "diskFull" }]);
});

test("delivered points free space without a wait and without a loss", () => {
  const disk = new MemoryDisk({ capacity: 60_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  const next = fill(store);
  for (let block = take(store); block; block = take(store)) settle(store, block);

  append(store, values(10, next), 2);

  expect(store.stats()).toMatchObject({ degraded: undefined, losses: [], settledPoints: next * 3 });
});

test("one segment with points is kept, however long the volume is full", () => {
  const disk = new MemoryDisk({ capacity: 30_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000 });
  append(store, values(10));
  eater(disk).eat();
  const next = fill(store, 10, 1);

  for (let at = 2; at < 600; at += 20) expect(() => append(store, values(10, next), at)).toThrow(unavailable);

  expect(store.stats()).toMatchObject({ losses: [], unsettledPoints: next * 3 });
});

test("with `block` nothing is ever dropped", () => {
  const disk = new MemoryDisk({ capacity: 100_000 });
  const { store } = openStore(disk, { segmentBytes: 20_000, whenFull: "block" });
  const next = fill(store);

  for (let at = 2; at < 600; at += 20) expect(() => append(store, values(10, next), at)).toThrow(unavailable);

  expect(store.stats().losses).toEqual([]);
});

test("a volume that reports ENOSPC only at the sync does not count as having space", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { whenFull: "block" });
  append(store, values(10));
  disk.fault = (call, path) => {
    if (call === "sync" && /seg-|room/.test(path)) throw failure("ENOSPC", path);
    return undefined;
  };
  expect(() => append(store, values(10, 10), 1)).toThrow(unavailable);
  // A small new segment fits, but the refused points do not.
  disk.fault = (call, path) => {
    if (call === "sync" && path.includes("room")) throw failure("ENOSPC", path);
    return undefined;
  };

  store.tick(moment(3));

  expect(store.stats().degraded).toContain("ENOSPC");
});
