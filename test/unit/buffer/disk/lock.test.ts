// The lock of a data directory, whatever has become of its file.
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../../../src/buffer/disk/disk-buffer.ts";
import { lockFolder } from "../../../../src/buffer/disk/lock.ts";
import { bufferOptions } from "../../../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../../../src/core/point.ts";
import { inProcess } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test.each([
  ["zeros", "\0".repeat(4_096)],
  ["a few bytes", "abc"],
  ["bytes of another file", "x".repeat(5_000)],
])("a LOCK that %s were written over still locks, one owner at a time", (_, content) => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("LOCK"), content);
  for (let owner = 0; owner < 2; owner++) {
    using _lock = lockFolder(folder.path);
    expect(_lock).toMatchObject({ exclusive: true, outlived: false });
    expect(() => lockFolder(folder.path)).toThrow("is in use by another process");
  }
});

test("locking takes not a byte of the disk: a full one is opened, too", () => {
  using folder = temporaryFolder();
  using _lock = lockFolder(folder.path);
  expect(readdirSync(folder.path)).toEqual(["LOCK"]);
  expect(statSync(folder.file("LOCK")).size).toBe(0);
});

test("nothing is written under a lock that others may share, and the folder is opened anew once it can be had alone", async () => {
  const disk = new MemoryDisk();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  const options = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 65_536 };
  const never = new AbortController().signal;
  const point = (value: number) => ({ input: "a" as InputId, time: epochMicros(1.7e15 + value), value });
  const owner = await openDiskBuffer(options, testRuntime({ clock }), never, inProcess(disk));
  const stored = owner.append([point(1)], { awaited: true }, never);
  await clock.advance(6);
  await stored;
  await owner[Symbol.asyncDispose]();
  const before = disk.fingerprint(new WeakMap());

  const volume = { canBeWritten: false };
  const lock = () => ({
    exclusive: volume.canBeWritten,
    get outlived() {
      return !this.exclusive && volume.canBeWritten;
    },
    [Symbol.dispose]() {},
  });
  const buffer = await openDiskBuffer(options, runtime, never, inProcess(disk, undefined, lock));
  await using reader = await buffer.reader();
  const refused = expect(buffer.append([point(2)], { awaited: true }, never)).rejects.toMatchObject({
    code: "BUFFER_UNAVAILABLE",
  });
  await clock.advance(4_000);
  await refused;
  const block = (await reader.take("backlog", { wait: false, maxPoints: 10 }, never))!;
  await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);
  await clock.advance(10_000);
  expect(disk.fingerprint(new WeakMap())).toBe(before);
  expect(buffer.stats().degraded).toContain("EROFS");

  volume.canBeWritten = true;
  await clock.advance(6_000);
  const after = buffer.append([point(2)], { awaited: true }, never);
  await clock.advance(6);
  await after;

  expect(buffer.stats()).toMatchObject({ appendedPoints: 2, unsettledPoints: 2, degraded: undefined });
});
