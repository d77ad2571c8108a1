// A segment that cannot be read: the others are delivered, and so is this one once it is readable.
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../../src/buffer/disk/options.ts";
import {
  append,
  folder,
  inProcess,
  openStore,
  settle,
  type Triple,
  take,
  takeAll,
} from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const t0 = 1_767_225_600e6;
const never = new AbortController().signal;

/** A disk with a closed store of these points in one segment. */
function diskWith(points: readonly Triple[]): MemoryDisk {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, points);
  store.close({ wall: t0, monotonic: 0 });
  return disk;
}

/** Makes the oldest segment unreadable. */
function makeUnreadable(disk: MemoryDisk): void {
  const oldest = disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .toSorted()[0]!;
  disk.fault = (call, path) => {
    if (call === "read" && path.endsWith(oldest)) throw failure("EIO", path);
    return undefined;
  };
}

test("a late point waits for a segment that cannot be read, while points that replace nothing are delivered", () => {
  const disk = diskWith([
    ["a", t0 + 10e6, 1],
    ["a", t0 + 20e6, 1],
  ]);
  const { store } = openStore(disk);
  makeUnreadable(disk);
  append(store, [["a", t0 + 10e6, 2]]);
  append(store, [["a", t0 + 30e6, 3]]);

  const before = takeAll(store);
  disk.fault = () => undefined;
  const after = takeAll(store);

  expect(before).toEqual([["a", t0 + 30e6, 3]]);
  expect(after).toEqual([
    ["a", t0 + 10e6, 1],
    ["a", t0 + 20e6, 1],
    ["a", t0 + 10e6, 2],
  ]);
});

test("a segment with only other inputs left does not delay late points", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 30; i++)
    append(store, [
      ["parked", t0 + i * 1e6, i],
      ["a", t0 + i * 1e6, i],
    ]);
  for (let block = take(store, "backlog", 1e6, undefined, ["parked"]); block; )
    block = (settle(store, block), take(store, "backlog", 1e6, undefined, ["parked"]));
  append(store, [["a", t0 + 1, 100]]);
  const without = () => take(store, "backlog", 1e6, undefined, ["parked"])?.points;

  makeUnreadable(disk);
  expect(take(store, "backlog", 1, ["parked"])?.points[0]?.[1]).not.toBe(t0);

  expect(without()).toEqual([["a", t0 + 1, 100]]);
});

test("a waiting reader gets the points of a segment that becomes readable again, without a new append", async () => {
  const disk = diskWith([["a", t0 + 10e6, 1]]);
  const clock = new ManualClock();
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  const options = { directory: folder, integration: "plant", config };
  await using buffer = await openDiskBuffer(options, testRuntime({ clock }), never, inProcess(disk));
  await using reader = await buffer.reader();
  makeUnreadable(disk);
  const values: number[] = [];
  const taking = reader.take("live", { wait: true, maxPoints: 1_000 }, never);
  taking.then(
    (block) => values.push(...(block?.series.flatMap(({ values: of }) => [...of]) ?? [])),
    () => {},
  );
  await clock.advance(4_000);
  expect(values).toEqual([]);

  disk.fault = () => undefined;
  await clock.advance(4_000);

  expect(values).toEqual([1]);
  await taking;
});
