// What a restart knows of deliveries: everything that was settled before a kill, and nothing of another buffer.
import { expect, test } from "vitest";
import { readStates } from "../../../../src/buffer/disk/counters/state-file.ts";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { seeded } from "../../../support/runtime.ts";

const t0 = 1_767_225_600_000_000;
/** `ticks` polls of three tags. */
const polls = (ticks: number, first = 0): Triple[] =>
  Array.from({ length: ticks }, (_, i) =>
    ["a", "b", "c"].map((input, k): Triple => [input, t0 + (first + i) * 1e6, (first + i) * 10 + k]),
  ).flat();
/** Enough series for the state to span several sectors. */
const manySeries = Array.from({ length: 200 }, (_, i): Triple => [`tag-${i}`, t0 + i, i]);
const segmentsOf = (disk: MemoryDisk) =>
  disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .toSorted();
const statesOf = (disk: MemoryDisk) => disk.list(folder).filter((name) => name.startsWith("state-"));

function expectAccountsToBalance({ store }: ReturnType<typeof openStore>) {
  const { appendedPoints, settledPoints, refusedPoints, unsettledPoints, losses } = store.stats();
  const lost = losses.reduce((sum, loss) => sum + loss.points, 0);
  expect(settledPoints + refusedPoints + unsettledPoints + lost).toBe(appendedPoints);
}

test("a kill right after a settlement repeats no settled point", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, polls(10));
  settle(store, take(store, "backlog", 10)!);
  settle(store, take(store, "backlog", 10)!, ["b"]);

  const after = openStore(disk.afterKill());

  expect(takeAll(after.store)).toHaveLength(10);
  expect(after.store.stats()).toMatchObject({ settledPoints: 20, unsettledPoints: 10, losses: [] });
});

test("a record delivered in parts leaves no series in the state file once it is wholly delivered", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, manySeries);
  append(store, polls(10));
  const parts = [take(store, "backlog", 120)!, take(store, "backlog", 120)!, take(store)!];
  const seriesIn = () => readStates(disk, folder).states[0]!.state.segments.map(({ series }) => series.length);
  for (const [i, part] of parts.entries()) {
    settle(store, part);
    expect(seriesIn()).toEqual(i === 0 ? [120] : [0]);
  }
  append(store, polls(10, 10));

  const after = openStore(disk.afterKill());

  expect(takeAll(after.store)).toHaveLength(30);
  expectAccountsToBalance(after);
});

test("a power cut after a settlement falls back to the state that was synced", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, polls(10));
  settle(store, take(store, "backlog", 10)!);
  store.tick(moment(10));
  for (let i = 0; i < 2; i++) settle(store, take(store, "backlog", 10)!);

  const after = openStore(disk.afterPowerCut(() => false));

  expect(takeAll(after.store)).toHaveLength(20);
  expectAccountsToBalance(after);
});

test("a synced settlement survives a power cut, whatever remains of later states that were not synced", () => {
  const random = seeded(3);
  const disk = new MemoryDisk();
  const opened = openStore(disk);
  append(opened.store, manySeries);
  append(opened.store, [["other", t0, 1]]);
  const block = take(opened.store, "backlog", 200)!;
  expect(block.points).toHaveLength(200);
  settle(
    opened.store,
    block,
    block.points.slice(0, 100).map(([input]) => input),
  );
  opened.store.tick(moment(10));
  const done = new Set(block.points.slice(0, 100).map(([input]) => input));
  const problems: string[] = [];
  const look = (at: MemoryDisk) => {
    for (let i = 0; i < 4; i++) {
      const after = openStore(at.afterPowerCut(() => random() < 0.5));
      for (const [input] of takeAll(after.store)) if (done.has(input)) problems.push(`${input} again`);
    }
  };
  const watch = (at: MemoryDisk) => {
    at.fault = (call) => {
      if (["write", "sync", "close"].includes(call)) look(at);
      return undefined;
    };
  };
  watch(disk);
  for (let i = 100; i < 112; i++) settle(opened.store, block, [block.points[i]![0]]);
  // The process is killed, the next process starts, and then the power fails.
  openStore(disk, { seed: 2, at: 20 });

  expect(problems.slice(0, 3)).toEqual([]);
});

test("a settlement is accepted while the state file cannot be written, and persisted once it can", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, polls(10));
  disk.fault = (call, path) => {
    if (call === "write" && path.includes("state-")) throw failure("EIO", path);
    return undefined;
  };
  settle(store, take(store, "backlog", 10)!);
  disk.fault = () => undefined;
  expect(takeAll(openStore(disk.afterKill()).store)).toHaveLength(30);
  store.tick(moment(10));

  expect(takeAll(openStore(disk.afterKill()).store)).toHaveLength(20);
});

test("the state of another buffer is not applied, and the log says so", () => {
  const delivered = new MemoryDisk();
  const other = openStore(delivered, { seed: 8 }).store;
  append(other, polls(2_000));
  settle(other, take(other, "backlog", 1_000)!);
  other.close(moment(10));
  const disk = new MemoryDisk();
  const own = openStore(disk, { seed: 9 }).store;
  append(own, polls(1_000));
  own.close(moment(10));
  for (const name of statesOf(disk)) disk.change(`${folder}/${name}`, () => delivered.content(`${folder}/${name}`));

  const after = openStore(disk.afterKill());

  expect(takeAll(after.store)).toHaveLength(3_000);
  expect(after.notes.map(({ message }) => message).join()).toContain("another buffer");
  expect(after.store.stats()).toMatchObject({ appendedPoints: 3_000, settledPoints: 0, unsettledPoints: 3_000 });
  expectAccountsToBalance(after);
});

test("one slot of another buffer in the state file has no effect", () => {
  const delivered = new MemoryDisk();
  const other = openStore(delivered, { seed: 8 }).store;
  append(other, polls(100));
  for (let i = 0; i < 60; i++) other.tick(moment(i * 10));
  const disk = new MemoryDisk();
  const own = openStore(disk, { seed: 9 }).store;
  append(own, polls(100));
  settle(own, take(own, "backlog", 100)!);
  own.tick(moment(10));
  for (const [i, name] of statesOf(disk).entries()) {
    const after = disk.afterKill();
    const [foreign = ""] = statesOf(delivered);
    after.change(`${folder}/${name}`, () => delivered.content(`${folder}/${foreign}`));
    const opened = openStore(after);
    // Damage to the newest slot may lose the last seconds; damage to another slot loses nothing.
    expect({ i, points: takeAll(opened.store).length }).toEqual({ i, points: expect.toBeOneOf([200, 300]) });
    expectAccountsToBalance(opened);
  }
});

test("the settled ranges of a segment are not applied to another segment of the same name", () => {
  const disk = new MemoryDisk();
  const own = openStore(disk, { seed: 9 }).store;
  append(own, polls(100));
  settle(own, take(own, "backlog", 100)!);
  own.tick(moment(10));
  const older = new MemoryDisk();
  const [name = ""] = segmentsOf(disk);
  // A buffer restored from a backup: the same UUID, and other segments with the same names.
  older.makeFolder(folder);
  older.open(`${folder}/FORMAT`, "create").write(disk.content(`${folder}/FORMAT`), 0);
  append(openStore(older, { seed: 10 }).store, polls(100, 500));
  const after = disk.afterKill();
  after.change(`${folder}/${name}`, () => older.content(`${folder}/${segmentsOf(older)[0]}`));

  expect(takeAll(openStore(after).store)).toHaveLength(300);
});

test.each(["whole records", "single series"])("truncating a segment settled by %s is counted exactly", (how) => {
  for (const part of [0.3, 0.5, 0.9]) {
    const disk = new MemoryDisk();
    const { store } = openStore(disk);
    for (let i = 0; i < 60; i++) append(store, polls(2, i * 2), i);
    const expected = new Set(polls(120).map((point) => point.join()));
    const drop = (points: readonly Triple[]) => points.forEach((point) => expected.delete(point.join()));
    if (how === "whole records") {
      const block = take(store, "backlog", 200)!;
      settle(store, block);
      drop(block.points);
    } else {
      const block = take(store, "backlog", 1e6, ["a"])!;
      settle(store, block);
      drop(block.points);
      const rest = take(store, "live", 60)!;
      settle(store, rest, ["b"]);
      drop(rest.points.filter(([input]) => input === "b"));
    }
    store.close(moment(100));
    const [name = ""] = segmentsOf(disk);
    disk.change(`${folder}/${name}`, (bytes) => bytes.slice(0, 4_096 + (bytes.length - 4_096) * part));

    const after = openStore(disk.afterKill(), { at: 200 });
    const { losses, unsettledPoints } = after.store.stats();
    const there = takeAll(after.store).map((point) => point.join());

    expect(unsettledPoints).toBe(there.length);
    expect(there.filter((point) => !expected.has(point))).toEqual([]);
    expect(losses.reduce((sum, loss) => sum + loss.points, 0)).toBe(expected.size - there.length);
    expectAccountsToBalance(after);
  }
});

test("the interval of the points missing at startup covers all of them", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 60; i++) append(store, polls(1, i), i);
  store.tick(moment(100));
  const names = segmentsOf(disk);
  for (const gone of [0, 2, names.length - 1]) {
    const after = disk.afterKill();
    after.remove(`${folder}/${names[gone]}`);

    const opened = openStore(after, { segmentBytes: 5_000, at: 200 }).store;
    const there = new Set(takeAll(opened).map(([, time]) => time));
    const missing = polls(60).filter(([, time]) => !there.has(time));
    const [loss] = opened.stats().losses;

    expect(loss?.points).toBe(missing.length);
    expect(loss?.from).toBeLessThanOrEqual(missing[0]![1]);
    expect(loss?.to).toBeGreaterThanOrEqual(missing.at(-1)![1]);
    // At most one poll wider on each side.
    expect(loss!.to! - loss!.from!).toBeLessThanOrEqual(missing.at(-1)![1] - missing[0]![1] + 2e6);
  }
});

test.each(["refused", "dropped"])("%s points whose removal a power cut undoes are not counted twice", (how) => {
  const disk = new MemoryDisk();
  const { store: first } = openStore(disk);
  append(first, polls(10));
  // Creates all three slots, because creating a slot later would sync the folder.
  for (let i = 0; i < 3; i++) settle(first, { id: i, points: [] });
  first.close(moment(1));
  const { store } = openStore(disk, { at: 2 });
  let isRemoved = false;
  let failures = 0;
  disk.fault = (call, path) => {
    isRemoved ||= call === "remove" && path.includes("/seg-");
    if (!isRemoved || call !== "syncFolder") return undefined;
    failures++;
    throw failure("EIO", path);
  };
  if (how === "refused") settle(store, take(store)!, undefined, 30);
  const later = how === "refused" ? 10 : 40 * 86_400;
  store.tick(moment(later));
  store.tick(moment(later + 10));
  settle(store, { id: 1, points: [] });
  expect(failures).toBeGreaterThan(0);

  // The removal is undone, and the unsynced write is on disk.
  let entries = 0;
  const after = openStore(
    disk.afterPowerCut(() => entries++ > 0),
    { at: later + 20 },
  );

  expect(takeAll(after.store)).toEqual([]);
  expect(after.store.stats().unsettledPoints).toBe(0);
  expectAccountsToBalance(after);
});

test("refused points that come back with an undone compaction are not counted twice", () => {
  const disk = new MemoryDisk();
  const { store: first } = openStore(disk);
  append(first, polls(100));
  first.close(moment(1));
  const { store } = openStore(disk, { at: 2 });
  settle(store, take(store)!, ["a"], 100);
  store.releaseAll();
  let isRenamed = false;
  disk.fault = (call, path) => {
    isRenamed ||= call === "rename";
    if (isRenamed && call === "syncFolder") throw failure("EIO", path);
    return undefined;
  };
  while (store.work(moment(200)));
  expect(isRenamed).toBe(true);
  store.tick(moment(400));

  const after = openStore(
    disk.afterPowerCut(() => false),
    { at: 500 },
  );
  for (let block = take(after.store); block; block = take(after.store)) settle(after.store, block);

  expect(after.store.stats()).toMatchObject({ settledPoints: 300, refusedPoints: 0, unsettledPoints: 0 });
});
