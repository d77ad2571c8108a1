// The lock of a data directory after its file was changed or deleted.
import { cpSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../../../src/buffer/disk/disk-buffer.ts";
import { nodeDisk } from "../../../../src/buffer/disk/files/disk.ts";
import { type FolderLock, lockFolder } from "../../../../src/buffer/disk/files/lock.ts";
import { bufferOptions } from "../../../../src/buffer/disk/options.ts";
import type { PointBuffer } from "../../../../src/core/buffer.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros, type InputId } from "../../../../src/core/point.ts";
import { inProcess } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { has } from "../../../support/platform.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const config = bufferOptions.parse({ reserveFreeDisk: "0" });
const never = new AbortController().signal;
const point = (value: number) => ({ input: "a" as InputId, time: epochMicros(1.7e15 + value), value });

test.each([
  ["zeros", "\0".repeat(4_096)],
  ["a few bytes", "abc"],
  ["bytes of another file", "x".repeat(5_000)],
])("a LOCK that %s were written over still locks, one owner at a time", (_, content) => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("LOCK"), content);
  for (let owner = 0; owner < 2; owner++) {
    using _lock = lockFolder(folder.path);
    expect(_lock.exclusive).toBe(true);
    expect(_lock.state()).toBe("held");
    expect(() => lockFolder(folder.path)).toThrow("is in use by another process");
  }
});

test.runIf(has.removalOfOpenFiles)("a deleted LOCK is locked again before another process can take it", () => {
  using folder = temporaryFolder();
  using first = lockFolder(folder.path);
  rmSync(folder.file("LOCK"));
  expect(first.state()).toBe("held");
  expect(() => lockFolder(folder.path)).toThrow("is in use by another process");
});

test.runIf(has.removalOfOpenFiles)("a lock ends when another process was first to lock a deleted LOCK", () => {
  using folder = temporaryFolder();
  using first = lockFolder(folder.path);
  rmSync(folder.file("LOCK"));
  using second = lockFolder(folder.path);
  expect([first.state(), second.state()]).toEqual(["stale", "held"]);
});

test("an unmounted folder, an empty one and another buffer in its place are recognised", () => {
  using parent = temporaryFolder();
  const folder = parent.file("buffer");
  mkdirSync(folder);
  using lock = lockFolder(folder);
  renameSync(folder, parent.file("elsewhere"));
  expect(lock.state()).toBe("unmounted");
  mkdirSync(folder);
  expect(lock.state()).toBe("unmounted");
  expect(readdirSync(folder)).toEqual([]);
  rmdirSync(folder);
  cpSync(parent.file("elsewhere"), folder, { recursive: true });
  expect(lock.state()).toBe("stale");
  rmSync(folder, { recursive: true });
  renameSync(parent.file("elsewhere"), folder);
  expect(lock.state()).toBe("held");
});

test("locking takes no byte of the disk, so a buffer on a full disk opens", () => {
  using folder = temporaryFolder();
  using _lock = lockFolder(folder.path);
  expect(readdirSync(folder.path)).toEqual(["LOCK"]);
  expect(statSync(folder.file("LOCK")).size).toBe(0);
});

test("nothing is written under a lock that may be shared, and the folder is reopened once the lock is exclusive", async () => {
  const disk = new MemoryDisk();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const options = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 65_536 };
  const owner = await openDiskBuffer(options, testRuntime({ clock }), never, inProcess(disk));
  const stored = owner.append([point(1)], { awaited: true }, never);
  await clock.advance(6);
  await stored;
  await owner[Symbol.asyncDispose]();
  const before = disk.fingerprint(new WeakMap());

  const volume = { canBeWritten: false };
  const lock = (): FolderLock => {
    const exclusive = volume.canBeWritten;
    return {
      exclusive,
      state: () => (!exclusive && volume.canBeWritten ? "stale" : "held"),
      [Symbol.dispose]() {},
    };
  };
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

/** Opens buffers on a real folder in this thread. */
function buffersOn(directory: string) {
  const clock = new ManualClock();
  const options = { directory, integration: "plant", config, segmentBytes: 65_536 };
  const open = () =>
    openDiskBuffer(options, testRuntime({ clock }), never, inProcess(nodeDisk(), undefined, lockFolder));
  const append = async (buffer: PointBuffer, value: number) => {
    const stored = buffer.append([point(value)], { awaited: true }, never).then(
      () => "stored",
      (error: unknown) => (error instanceof AgentError ? error.code : String(error)),
    );
    await clock.advance(6);
    return await stored;
  };
  return { clock, open, append };
}

test.runIf(has.removalOfOpenFiles)(
  "a buffer whose LOCK was deleted, and that another process has opened since, acknowledges nothing more",
  async () => {
    using folder = temporaryFolder();
    const { clock, open, append } = buffersOn(folder.path);
    await using first = await open();
    expect(await append(first, 1)).toBe("stored");
    rmSync(folder.file("LOCK"));
    {
      await using second = await open();
      expect(await append(first, 2)).toBe("BUFFER_UNAVAILABLE");
      await clock.advance(4_000);
      expect(first.stats().degraded).toContain("in use by another process");
      expect(await append(second, 3)).toBe("stored");
      expect(second.stats()).toMatchObject({ appendedPoints: 2, unsettledPoints: 2, losses: [] });
    }
    await clock.advance(4_000);
    expect(await append(first, 2)).toBe("stored");
    expect(first.stats()).toMatchObject({ appendedPoints: 3, unsettledPoints: 3, losses: [], degraded: undefined });
  },
);

test("a buffer whose folder is unmounted writes nothing in its place and continues once it is mounted", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  const { clock, open, append } = buffersOn(directory);
  await using buffer = await open();
  expect(await append(buffer, 1)).toBe("stored");
  renameSync(directory, parent.file("elsewhere"));
  mkdirSync(directory);
  expect(await append(buffer, 2)).toBe("BUFFER_UNAVAILABLE");
  await clock.advance(10_000);
  expect(readdirSync(directory)).toEqual([]);
  expect(buffer.stats().degraded).toContain("an empty folder has its place");

  rmdirSync(directory);
  renameSync(parent.file("elsewhere"), directory);
  expect(await append(buffer, 2)).toBe("stored");
  expect(buffer.stats()).toMatchObject({ appendedPoints: 2, unsettledPoints: 2, losses: [], degraded: undefined });
});
