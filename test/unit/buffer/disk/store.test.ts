import { describe, expect, test, vi } from "vitest";
import { crc32 } from "../../../../src/buffer/disk/files/bytes.ts";
import { formatFileName } from "../../../../src/buffer/disk/format/segment-file.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const t0 = 1_767_225_600_000_000;
/** `ticks` polls of three tags. */
const polls = (ticks: number, first = 0): Triple[] =>
  Array.from({ length: ticks }, (_, i) =>
    ["a", "b", "c"].map((input, k): Triple => [input, t0 + (first + i) * 1e6, (first + i) * 10 + k]),
  ).flat();
const byTime = (points: readonly Triple[]) => points.toSorted((x, y) => x[1] - y[1] || (x[0] < y[0] ? -1 : 1));

/** Every point is settled, refused, lost or stored. */
function expectBooksToBalance(store: ReturnType<typeof openStore>["store"]) {
  const { appendedPoints, settledPoints, refusedPoints, unsettledPoints, losses } = store.stats();
  const lost = losses.reduce((sum, loss) => sum + loss.points, 0);
  expect(settledPoints + refusedPoints + unsettledPoints + lost).toBe(appendedPoints);
}

test("a block that was leased but not settled is delivered again after a restart", () => {
  const disk = new MemoryDisk();
  const first = openStore(disk).store;
  append(first, polls(4));
  expect(take(first)?.points).toHaveLength(12);

  const { store } = openStore(disk.afterKill());

  expect(byTime(takeAll(store))).toEqual(byTime(polls(4)));
});

test("the oldest stored time includes late points", () => {
  const { store } = openStore(new MemoryDisk());
  append(store, [["a", t0 + 5e6, 1]]);
  expect(store.stats().oldest).toBe(t0 + 5e6);
  append(store, [["a", t0, 2]]);
  expect(store.stats().oldest).toBe(t0);
});

test("delivered segments are deleted, however often their points may be repeated", () => {
  const { store } = openStore(new MemoryDisk(), { segmentBytes: 65_536 });
  const many = (from: number) =>
    Array.from({ length: 8_192 }, (_, i): Triple => ["a", t0 + (from + i) * 1e3, (from + i) % 1_000]);
  for (let i = 0; i < 32; i++) {
    append(store, many(i * 8_192), i);
    for (let block = take(store); block; block = take(store)) settle(store, block);
    store.tick(moment(10 * i));
    expect(store.stats().segments).toBeLessThanOrEqual(2);
  }
  expect(store.stats()).toMatchObject({ settledPoints: 32 * 8_192, unsettledPoints: 0, losses: [] });
});

test("settled points are not delivered again once the state file is written", () => {
  const disk = new MemoryDisk();
  const first = openStore(disk).store;
  append(first, polls(2));
  append(first, polls(2, 2));
  const block = take(first, "backlog", 6)!;
  settle(first, block, ["a"]);
  first.tick(moment(10));

  const { store } = openStore(disk.afterKill());

  const points = takeAll(store);
  expect(byTime(points)).toEqual(byTime(polls(4).filter(([input, time]) => input !== "a" || time >= t0 + 2e6)));
  expect(store.stats()).toMatchObject({ appendedPoints: 12, settledPoints: 2, unsettledPoints: 10 });
});

test("the live lane serves the newest points and the backlog lane the oldest, none of them twice", () => {
  const { store } = openStore(new MemoryDisk());
  for (let i = 0; i < 6; i++) append(store, polls(1, i));

  const live = take(store, "live", 6)!;
  const backlog = take(store, "backlog", 6)!;
  const rest = takeAll(store);

  expect(byTime(live.points)).toEqual(byTime(polls(2, 4)));
  expect(byTime(backlog.points)).toEqual(byTime(polls(2)));
  expect(byTime(rest)).toEqual(byTime(polls(2, 2)));
});

test("a block of some inputs leaves the others in place, and released points can be leased again", () => {
  const { store } = openStore(new MemoryDisk());
  for (let i = 0; i < 3; i++) append(store, polls(1, i));

  const some = take(store, "backlog", 100, ["b"])!;
  const others = take(store, "backlog", 100)!;
  expect(some.points.map(([input]) => input)).toEqual(["b", "b", "b"]);
  expect(byTime(others.points)).toEqual(byTime(polls(3).filter(([input]) => input !== "b")));
  expect(take(store)).toBeUndefined();

  store.release([some.id]);
  settle(store, others);
  expect(takeAll(store)).toEqual(some.points);
  expectBooksToBalance(store);
});

test("a block never exceeds the requested number of points, if necessary with only some series of a record", () => {
  const { store } = openStore(new MemoryDisk());
  append(store, polls(4));

  const sizes = [];
  for (let block = take(store, "backlog", 5); block; block = take(store, "backlog", 5)) {
    sizes.push(block.points.length);
    settle(store, block);
  }

  expect(sizes).toEqual([4, 4, 4]);
  expect(store.stats()).toMatchObject({ settledPoints: 12, unsettledPoints: 0, oldest: undefined });
});

test("the state of single series is bounded: leasing single series stops, leasing whole records continues", () => {
  const { store } = openStore(new MemoryDisk(), { segmentBytes: 60_000 });
  const names = (from: number, count: number) => Array.from({ length: count }, (_, i) => `tag${from + i}`);
  for (let tick = 0; tick < 2; tick++)
    for (let from = 0; from < 20_000; from += 4_000)
      append(
        store,
        names(from, 4_000).map((name): Triple => [name, t0 + tick * 1e6, tick]),
      );
  const points = 2 * 20_000;

  const taken: number[] = [];
  // The first point of each record stays unsettled, so that no part of the log is settled as a whole.
  const half = names(0, 20_000).filter((_, i) => i % 4_000 !== 0);
  for (let block = take(store, "backlog", 20_000, half); block; block = take(store, "backlog", 20_000, half)) {
    settle(store, block);
    taken.push(block.points.length);
  }
  const byThemselves = taken.reduce((sum, count) => sum + count, 0);
  const rest = takeAll(store).length;

  expect(byThemselves).toBeGreaterThan(30_000);
  expect(byThemselves).toBeLessThan(38_000);
  expect(byThemselves + rest).toBe(points);
});

test("a search for single series through many segments yields to other work", () => {
  const { store } = openStore(new MemoryDisk(), { segmentBytes: 5_000 });
  for (let tick = 0; store.stats().segments < 12; tick++) append(store, [["often", t0 + tick * 1e6, Math.sqrt(tick)]]);
  append(store, [["once", t0, 1]]);
  const inputs = new Set([store.inputs.numberOf("once" as InputId)]);

  let requests = 1;
  let taken = store.take({ lane: "backlog", maxPoints: 10, inputs });
  for (; taken.resumeAt !== undefined; requests++)
    taken = store.take({ lane: "backlog", maxPoints: 10, inputs, from: taken.resumeAt });

  expect(taken.block?.values).toEqual(Float64Array.of(1));
  expect(requests).toBeGreaterThan(4);
});

test("a segment is deleted when all its points are settled", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 60; i++) append(store, polls(1, i));
  const before = store.stats();
  expect(before.segments).toBeGreaterThan(5);

  for (let block = take(store); block; block = take(store)) settle(store, block);
  store.tick(moment(10));

  // The segment being written stays.
  expect(store.stats()).toMatchObject({ segments: 1, settledPoints: 180, unsettledPoints: 0 });
  expect(disk.list(folder).filter((name) => name.startsWith("seg-"))).toHaveLength(1);
});

test("of values with the same time only a repeat of the newest is dropped, and they are delivered in the order of their appends", () => {
  const disk = new MemoryDisk();
  const first = openStore(disk).store;
  append(first, [
    ["a", t0, 1],
    ["a", t0, 1],
    ["a", t0, 2],
    ["a", t0, 1],
  ]);
  expect(first.stats()).toMatchObject({ appendedPoints: 3, duplicatePoints: 1, collidedPoints: 2 });
  first.close(moment(1));

  const { store } = openStore(
    disk.afterPowerCut(() => false),
    { at: 2 },
  );
  append(store, [
    ["b", t0 + 1, 1],
    ["a", t0, 1],
    ["a", t0, 3],
  ]);

  expect(byTime(takeAll(store))).toEqual([
    ["a", t0, 1],
    ["a", t0, 2],
    ["a", t0, 1],
    ["a", t0, 1],
    ["a", t0, 3],
    ["b", t0 + 1, 1],
  ]);
});

test("a short write is continued until all bytes are written", () => {
  const disk = new MemoryDisk();
  disk.fault = (call, path) => (call === "write" && path.includes("seg-") ? "short" : undefined);
  append(openStore(disk).store, polls(4));
  disk.fault = () => undefined;

  const { store } = openStore(disk.afterPowerCut(() => false));

  expect(byTime(takeAll(store))).toEqual(byTime(polls(4)));
});

describe("a disk that fails", () => {
  test("a failed sync is never retried: the points are written to a new segment", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk);
    append(store, polls(1));
    let failed: string | undefined;
    const syncedAfter: string[] = [];
    disk.fault = (call, path) => {
      if (call !== "sync" || !path.includes("seg-")) return undefined;
      if (failed !== undefined) {
        syncedAfter.push(path);
        return undefined;
      }
      failed = path;
      throw failure("EIO", path);
    };

    append(store, polls(1, 1));

    expect(syncedAfter).not.toContain(failed);
    expect(store.stats().degraded).toBeUndefined();
    disk.fault = () => undefined;
    const { store: again } = openStore(disk.afterPowerCut(() => false));
    expect(byTime(takeAll(again))).toEqual(byTime(polls(2)));
  });

  test("a failing disk is reported, nothing is acknowledged, and the buffer recovers without a restart", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk);
    append(store, polls(1));
    disk.fault = (call, path) => {
      if (["write", "sync", "setSize"].includes(call)) throw failure("EIO", path);
      return undefined;
    };

    expect(() => append(store, polls(1, 1))).toThrow(expect.objectContaining({ code: "BUFFER_UNAVAILABLE" }));
    expect(store.stats()).toMatchObject({ appendedPoints: 3, degraded: expect.stringContaining("EIO") });
    expect(byTime(takeAll(store))).toEqual(byTime(polls(1)));

    disk.fault = () => undefined;
    store.tick(moment(2));
    expect(store.stats().degraded).toBeUndefined();
    append(store, polls(1, 1));
    store.close(moment(3));
    const { store: again } = openStore(disk.afterPowerCut(() => false));
    expect(byTime(takeAll(again))).toEqual(byTime(polls(2)));
    expectBooksToBalance(again);
  });
});

describe("bounds", () => {
  test("beyond maxSize whole segments with the oldest points are dropped", () => {
    const { store } = openStore(new MemoryDisk(), { segmentBytes: 8_192, maxSize: 40_000 });
    for (let i = 0; i < 400; i++) append(store, polls(3, i * 3));

    const { bytes, losses, unsettledPoints } = store.stats();
    expect(bytes).toBeLessThanOrEqual(40_000);
    expect(losses).toMatchObject([{ reason: "maxSize", points: 3_600 - unsettledPoints, from: t0 }]);
    expect(byTime(takeAll(store))).toEqual(byTime(polls(1_200)).slice(-unsettledPoints));
  });

  test("with `block` a full buffer accepts no points until space is free", () => {
    const { store } = openStore(new MemoryDisk(), { segmentBytes: 8_192, maxSize: 40_000, whenFull: "block" });
    let appended = 0;
    expect(() => {
      for (; appended < 1_000; appended++) append(store, polls(3, appended * 3));
    }).toThrow(expect.objectContaining({ code: "BUFFER_UNAVAILABLE" }));
    expect(store.stats().losses).toEqual([]);
    expect(store.stats().degraded).toContain("full");

    settle(store, take(store)!);
    store.tick(moment(5));
    expect(store.stats().degraded).toBeUndefined();
    append(store, polls(3, appended * 3));
    expectBooksToBalance(store);
  });

  test("the buffer shrinks when other programs need space on the volume", () => {
    const disk = new MemoryDisk({ capacity: 100_000 });
    const { store } = openStore(disk, { segmentBytes: 8_192, reserveFreeDisk: 20_000 });
    for (let i = 0; i < 200; i++) append(store, polls(3, i * 3));
    expect(store.stats().losses).toEqual([]);

    const others = disk.open("/data/others", "create");
    others.write(new Uint8Array(50_000).fill(1), 0);
    store.tick(moment(2));

    expect(disk.free(folder)).toBeGreaterThanOrEqual(20_000);
    expect(store.stats().losses).toMatchObject([{ reason: "reserveFreeDisk" }]);
    expectBooksToBalance(store);
  });

  test("a volume that other programs fill beyond the reserve leaves one segment, also after a restart", () => {
    const disk = new MemoryDisk({ capacity: 100_000 });
    const first = openStore(disk, { segmentBytes: 8_192 }).store;
    for (let i = 0; i < 200; i++) append(first, polls(3, i * 3));
    first.close(moment(1));

    const { store } = openStore(disk, { segmentBytes: 8_192, reserveFreeDisk: 100_000, at: 2 });
    const before = store.stats();
    store.tick(moment(3));
    const { segments, unsettledPoints, losses } = store.stats();

    expect(before.segments).toBeGreaterThan(3);
    expect(segments).toBe(1);
    expect(unsettledPoints).toBeGreaterThan(0);
    expect(losses).toMatchObject([{ reason: "reserveFreeDisk", points: 1_800 - unsettledPoints }]);
    expect(takeAll(store)).toHaveLength(unsettledPoints);
  });

  test("points that could not be delivered for longer than maxAge are dropped, and a clock jump drops none", () => {
    const { store } = openStore(new MemoryDisk(), { maxAgeMs: 60_000 });
    append(store, polls(1));
    store.tick(moment(10));
    append(store, polls(1, 1), 20);

    store.tick({ wall: moment(1e6).wall, monotonic: 30_000 });
    expect(store.stats().losses).toEqual([]);
    store.tick(moment(75));
    expect(store.stats()).toMatchObject({
      unsettledPoints: 3,
      losses: [{ reason: "maxAge", points: 3, from: t0, to: t0 }],
    });
  });
});

describe("recovery at startup", () => {
  test("nothing is ever written after a torn tail", () => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(2));
    const [name = ""] = disk.list(folder).filter((entry) => entry.startsWith("seg-"));
    const after = disk.afterKill();
    after.change(`${folder}/${name}`, (bytes) => {
      const end = bytes.findLastIndex((byte) => byte !== 0);
      return Uint8Array.from(bytes, (byte, i) => (i > end && i < end + 100 ? 0xaa : byte));
    });

    const { store, notes } = openStore(after);
    append(store, polls(1, 2));

    expect(notes).toMatchObject([{ message: "cut off a write that had not been finished" }]);
    expect(after.list(folder).filter((entry) => entry.startsWith("seg-"))).toHaveLength(2);
    expect(byTime(takeAll(store))).toEqual(byTime(polls(3)));
    expect(store.stats().losses).toEqual([]);
  });

  test("a backlog stays with its integration, and an empty buffer is assigned to the configured one", () => {
    const disk = new MemoryDisk();
    const first = openStore(disk, { integration: "old" }).store;
    append(first, polls(1));

    const second = openStore(disk, { integration: "new" }).store;
    expect(second.foreign).toBe("old");
    append(second, polls(1, 1));

    const third = openStore(disk, { integration: "old" }).store;
    expect(third.foreign).toBeUndefined();
    for (let block = take(third); block; block = take(third)) settle(third, block);
    third.close(moment(1));

    expect(openStore(disk, { integration: "new" }).store.foreign).toBeUndefined();
  });

  test("a buffer of a newer version is refused and unchanged", () => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(1));
    const [name = ""] = disk.list(folder).filter((entry) => entry.startsWith("seg-"));
    const line = "tagferry buffer 3 x";
    const sum = crc32(new TextEncoder().encode(line)).toString(16).padStart(8, "0");
    disk.change(`${folder}/${formatFileName}`, () => new TextEncoder().encode(`${line} ${sum}\n`));
    const before = disk.list(folder).map((entry) => [entry, disk.content(`${folder}/${entry}`)]);
    expect(name).not.toBe("");

    expect(() => openStore(disk)).toThrow(expect.objectContaining({ code: "BUFFER_NEWER" }));
    expect(disk.list(folder).map((entry) => [entry, disk.content(`${folder}/${entry}`)])).toEqual(before);
  });

  const olderFormat = new TextEncoder().encode(`tagferry buffer 1 ${"0".repeat(32)} 01234567\n`);
  const makeOlder = (disk: MemoryDisk, name: string) => disk.change(`${folder}/${name}`, (bytes) => bytes.with(8, 1));

  test.each([
    ["with its segments", { format: true, segments: true }],
    ["without its FORMAT", { format: false, segments: true }],
    ["that is empty", { format: true, segments: false }],
  ])("a buffer of an older version %s is refused and not touched", (_, { format, segments }) => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(1));
    for (const name of disk.list(folder).filter((entry) => entry.startsWith("seg-")))
      if (segments) makeOlder(disk, name);
      else disk.remove(`${folder}/${name}`);
    if (format) disk.change(`${folder}/${formatFileName}`, () => olderFormat);
    else disk.remove(`${folder}/${formatFileName}`);
    const before = disk.list(folder).map((entry) => [entry, disk.content(`${folder}/${entry}`)]);

    expect(() => openStore(disk)).toThrow(expect.objectContaining({ code: "BUFFER_OLDER" }));
    expect(disk.list(folder).map((entry) => [entry, disk.content(`${folder}/${entry}`)])).toEqual(before);
  });

  test.each(["FORMAT", "segment"])("a damaged version in the %s is damage, and costs no point", (damaged) => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(3));
    const [segment = ""] = disk.list(folder).filter((entry) => entry.startsWith("seg-"));
    if (damaged === "segment") makeOlder(disk, segment);
    else disk.change(`${folder}/${formatFileName}`, () => olderFormat);

    expect(byTime(takeAll(openStore(disk).store))).toEqual(byTime(polls(3)));
  });

  test("without FORMAT and state everything is delivered again, and nothing is lost", () => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(3));
    for (const name of disk.list(folder)) if (!name.startsWith("seg-")) disk.remove(`${folder}/${name}`);

    const { store } = openStore(disk);

    expect(byTime(takeAll(store))).toEqual(byTime(polls(3)));
    expectBooksToBalance(store);
  });

  test("a missing segment is counted as missing, and points that the disk lost after a sync as not persisted", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk, { segmentBytes: 5_000 });
    for (let i = 0; i < 40; i++) append(store, polls(1, i));
    store.tick(moment(10));
    const names = disk
      .list(folder)
      .filter((name) => name.startsWith("seg-"))
      .toSorted();
    const first = disk.afterKill();
    first.remove(`${folder}/${names[1]}`);
    const last = disk.afterKill();
    last.remove(`${folder}/${names.at(-1)}`);

    const missing = openStore(first).store.stats();
    const lied = openStore(last).store.stats();

    expect(missing.losses).toMatchObject([{ reason: "missing", points: 120 - missing.unsettledPoints }]);
    expect(lied.losses).toMatchObject([{ reason: "diskLied", points: 120 - lied.unsettledPoints }]);
  });

  const newestOf = (disk: MemoryDisk) =>
    `${folder}/${disk
      .list(folder)
      .filter((name) => name.startsWith("seg-"))
      .toSorted()
      .at(-1)}`;

  test("deleting the newest segment while the agent runs is counted, and later points are safe", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk);
    append(store, polls(2));
    store.tick(moment(10));
    append(store, polls(3, 2), 11);
    disk.remove(newestOf(disk));

    store.tick(moment(12));
    append(store, polls(1, 5), 13);
    const after = openStore(
      disk.afterPowerCut(() => false),
      { at: 20 },
    ).store;

    for (const each of [store, after])
      expect(each.stats()).toMatchObject({
        appendedPoints: 18,
        unsettledPoints: 3,
        losses: [{ reason: "missing", points: 15, from: t0, to: t0 + 4e6 }],
      });
    expect(byTime(takeAll(after))).toEqual(byTime(polls(1, 5)));
  });

  test("deleting older segments while the agent runs is counted, and the others are delivered", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk, { segmentBytes: 5_000 });
    for (let i = 0; i < 40; i++) append(store, polls(1, i));
    const sealed = disk
      .list(folder)
      .filter((name) => name.startsWith("seg-") && `${folder}/${name}` !== newestOf(disk));
    for (const name of sealed) disk.remove(`${folder}/${name}`);

    store.tick(moment(10));

    const [newest] = takeAll(store).toSorted((x, y) => x[1] - y[1]);
    const points = ((newest?.[1] ?? 0) - t0) / 1e6;
    expect(store.stats()).toMatchObject({
      appendedPoints: 120,
      unsettledPoints: 120 - points * 3,
      losses: [{ reason: "missing", points: points * 3, from: t0, to: t0 + (points - 1) * 1e6 }],
    });
  });

  test("points written to the successor of a deleted empty segment are not removed with it, whatever fails", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk);
    const failing = (part: string) => (call: string, path: string) => {
      if (call === "write" && path.includes(part)) throw failure("EIO", path);
      return undefined;
    };
    disk.fault = failing("seg-");
    expect(() => append(store, polls(1))).toThrow("EIO");
    disk.fault = () => undefined;
    store.tick(moment(2));
    disk.remove(newestOf(disk));
    disk.fault = failing("state-");
    store.tick(moment(4));
    disk.fault = () => undefined;

    append(store, polls(3), 5);
    store.tick(moment(20));

    expect(byTime(takeAll(openStore(disk.afterKill(), { at: 30 }).store))).toEqual(byTime(polls(3)));
  });

  test("deletion of the newest segment after a crash is reported, also when the state file has none of its points", () => {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(2));
    const crashed = disk.afterPowerCut(() => false);
    crashed.remove(newestOf(crashed));

    const { store, notes } = openStore(crashed, { at: 1 });
    append(store, polls(1, 5), 2);
    const again = openStore(crashed.afterKill(), { at: 3 });

    expect(notes.some(({ message }) => message.includes("the newest segment is gone"))).toBe(true);
    expect(again.notes.some(({ message }) => message.includes("gone"))).toBe(false);
    expect(byTime(takeAll(again.store))).toEqual(byTime(polls(1, 5)));
  });

  test("a delivered segment deleted by another program does not keep others from being deleted", () => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk, { segmentBytes: 5_000 });
    for (let i = 0; i < 40; i++) append(store, polls(1, i));
    const { segments } = store.stats();
    const [oldest = ""] = disk
      .list(folder)
      .filter((name) => name.startsWith("seg-"))
      .toSorted();
    for (let block = take(store); block; block = take(store)) settle(store, block);
    disk.remove(`${folder}/${oldest}`);

    store.tick(moment(10));

    expect(segments).toBeGreaterThan(2);
    expect(store.stats()).toMatchObject({ segments: 1, settledPoints: 120, losses: [] });
  });

  test.each(["EIO", "EACCES", "EMFILE", "ENOMEM", "EUCLEAN"])(
    "a newest segment that gives nothing but %s keeps nothing from starting",
    (code) => {
      const disk = new MemoryDisk();
      const { store } = openStore(disk, { segmentBytes: 20_000 });
      append(store, polls(900));
      append(store, polls(900, 900));
      append(store, polls(900, 1_800));
      store.tick(moment(10));
      append(store, polls(1, 5_000), 11);
      const names = disk.list(folder).filter((name) => name.startsWith("seg-"));
      const newest = `${folder}/${names.toSorted().at(-1)}`;
      for (const moves of [true, false]) {
        const after = disk.afterKill();
        after.fault = (call, path) => {
          if (path === newest && (call === "open" || (call === "rename" && !moves))) throw failure(code, path);
          return undefined;
        };

        const again = openStore(after, { at: 20 });
        append(again.store, polls(1, 9_000), 21);
        const read = takeAll(again.store);

        expect(again.notes.some(({ message }) => message.includes("is not known"))).toBe(true);
        expect(read.some(([, time]) => time === t0 + 9_000 * 1e6)).toBe(true);
        expectBooksToBalance(again.store);
        if (moves) {
          expect(after.list(`${folder}/quarantine`)).toContain(names.toSorted().at(-1));
          expect(again.store.stats().losses).toMatchObject([{ reason: "damaged" }]);
        }
        expect(openStore(after.afterKill(), { at: 30 }).store.stats().appendedPoints).toBe(
          again.store.stats().appendedPoints,
        );
      }
    },
  );

  const foreignName = "seg-0000000000000009.log";
  function withForeignSegment(): MemoryDisk {
    const disk = new MemoryDisk();
    append(openStore(disk).store, polls(1));
    const other = new MemoryDisk();
    append(openStore(other, { seed: 99 }).store, polls(1, 7));
    const [name = ""] = other.list(folder).filter((entry) => entry.startsWith("seg-"));
    disk.open(`${folder}/${foreignName}`, "create").write(other.content(`${folder}/${name}`), 0);
    return disk.afterKill();
  }

  test("a segment of another buffer is set aside and never read", () => {
    const again = openStore(withForeignSegment());

    expect(byTime(takeAll(again.store))).toEqual(byTime(polls(1)));
    expect(again.notes.some(({ message }) => message.includes("another buffer"))).toBe(true);
  });

  test("a file that is set aside is in one of the two places after a power cut", () => {
    const disk = withForeignSegment();

    // The next segment syncs the folder from which the file was moved.
    append(openStore(disk).store, polls(1, 9));
    const left = disk.afterPowerCut(() => false);

    expect([...left.list(folder), ...left.list(`${folder}/quarantine`)]).toContain(foreignName);
  });
});
