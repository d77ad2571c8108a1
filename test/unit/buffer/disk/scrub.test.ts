// Damage is reported exactly and once it is read. During an outage, a background check reads the sealed segments.
import { expect, test } from "vitest";
import type { Store } from "../../../../src/buffer/disk/log/store.ts";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";

const t0 = 1_767_225_600_000_000;
const timeOf = (number: number) => t0 + number * 1e6;
/** Polls of three tags. */
const poll = (number: number): Triple[] => ["a", "b", "c"].map((input, k) => [input, timeOf(number), number * 10 + k]);
const segmentsOf = (disk: MemoryDisk) =>
  disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .toSorted();

/** Flips one bit in the payload of the record that holds this poll. */
function damage(disk: MemoryDisk, number: number): void {
  for (const name of segmentsOf(disk)) {
    const at = Buffer.from(disk.content(`${folder}/${name}`)).indexOf(
      Buffer.from(Float64Array.of(timeOf(number)).buffer),
      4_096,
    );
    if (at < 0) continue;
    disk.change(`${folder}/${name}`, (bytes) => {
      bytes[at + 32]! ^= 1;
      return bytes;
    });
    return;
  }
  throw new Error("there is no such record");
}

function outage(polls: number, segmentBytes = 6_000) {
  const disk = new MemoryDisk();
  const { store, notes } = openStore(disk, { segmentBytes });
  for (let i = 0; i < polls; i++) append(store, poll(i), i);
  return { disk, store, notes };
}

/** Runs the background work of the buffer as `disk-buffer.ts` does. */
function pass(store: Store, from: number, seconds: number): void {
  for (let at = from; at < from + seconds; at += 2) {
    store.tick(moment(at));
    let more = store.work(moment(at));
    for (let i = 1; more && i < 20; i++) more = store.work(moment(at + i / 10));
  }
}

const lost = (store: Store) =>
  store.stats().losses.map(({ reason, points, from, to }) => ({ reason, points, from, to }));

test("damage in a partly delivered record is reported exactly with the first block that is read", () => {
  for (const restart of [false, true]) {
    const { disk, store } = outage(40);
    const block = take(store, "backlog", 1e6, ["b"])!;
    settle(store, block);
    store.tick(moment(50));
    const settled = store.stats().settledPoints;
    damage(disk, 3);
    const now = restart ? openStore(disk, { segmentBytes: 6_000, at: 60, seed: 2 }).store : store;

    const first = take(now, "backlog", 30)!;

    expect(first.points.every(([input]) => input !== "b")).toBe(true);
    expect(lost(now)).toEqual([{ reason: "damaged", points: 2, from: timeOf(3), to: timeOf(3) }]);
    expect(now.stats()).toMatchObject({ settledPoints: settled, unsettledPoints: 120 - settled - 2 });
    now.release([first.id]);
    expect(takeAll(now)).toHaveLength(120 - settled - 2);
  }
});

test("damage in leased points is counted when they are released, and not when they are delivered", () => {
  for (const delivered of [true, false]) {
    const { disk, store } = outage(60);
    const block = take(store, "backlog", 15)!;
    damage(disk, 2);
    pass(store, 100, 600);
    expect(lost(store)).toEqual([]);

    if (delivered) settle(store, block);
    else store.release([block.id]);
    takeAll(store);

    expect(lost(store).reduce((sum, { points }) => sum + points, 0)).toBe(delivered ? 0 : 3);
    const { appendedPoints, settledPoints, unsettledPoints } = store.stats();
    expect(settledPoints + unsettledPoints + (delivered ? 0 : 3)).toBe(appendedPoints);
  }
});

test("during an outage damage in sealed segments is found, counted and set aside without a reader", () => {
  const { disk, store, notes } = outage(200);
  damage(disk, 2);
  damage(disk, 100);

  pass(store, 300, 120);

  expect(lost(store)).toEqual([{ reason: "damaged", points: 6, from: timeOf(2), to: timeOf(100) }]);
  expect(store.stats().losses[0]?.intervals.map(({ points, from }) => ({ points, from }))).toEqual([
    { points: 3, from: timeOf(2) },
    { points: 3, from: timeOf(100) },
  ]);
  expect(notes.some(({ message }) => message.includes("damaged"))).toBe(true);
  expect(disk.list(`${folder}/quarantine`).length).toBe(2);
  // The loss is on disk before the next start.
  expect(
    openStore(
      disk.afterPowerCut(() => false),
      { seed: 2, at: 500 },
    ).store.stats().losses,
  ).toEqual(store.stats().losses);
});

test("checked segments are checked again after an hour, at no more than 512 KiB a second", () => {
  const { disk, store } = outage(200);
  pass(store, 200, 400);
  damage(disk, 0);
  let read = 0;
  // The tick also looks for the last record of the segment being written.
  const active = disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .toSorted()
    .at(-1);
  disk.fault = (call, path) => {
    if (call === "read" && path.includes("seg-") && !path.endsWith(`/${active}`)) read++;
    return undefined;
  };
  pass(store, 602, 600);
  // No check is due yet.
  expect(read).toBe(0);
  expect(lost(store)).toEqual([]);
  pass(store, 3_900, 900);

  expect(lost(store).length).toBe(1);
  // At most 1 MiB every 2 s.
  expect(read).toBeLessThanOrEqual(450);
});

test("checking a segment that is temporarily unreadable loses nothing", () => {
  const { disk, store } = outage(200);
  disk.fault = (call, path) => {
    if (call === "read" && path.includes("seg-")) throw failure("EIO", path);
    return undefined;
  };
  pass(store, 200, 100);
  disk.fault = () => undefined;

  expect(takeAll(store)).toHaveLength(600);
  expect(lost(store)).toEqual([]);
});
