// The buffer's folder is unmounted, mounted again or replaced by another one.
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../../../src/buffer/disk/disk-buffer.ts";
import { type Disk, nodeDisk } from "../../../../src/buffer/disk/files/disk.ts";
import { type FolderLock, lockFolder } from "../../../../src/buffer/disk/files/lock.ts";
import { bufferOptions } from "../../../../src/buffer/disk/options.ts";
import type { PointBuffer } from "../../../../src/core/buffer.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros, type InputId } from "../../../../src/core/point.ts";
import { append as appendTo, inProcess, moment, openStore, type Triple, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { has } from "../../../support/platform.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const config = bufferOptions.parse({ reserveFreeDisk: "0" });
const never = new AbortController().signal;

function buffersOn(directory: string, integration = "plant", lock: (folder: string) => FolderLock = lockFolder) {
  const clock = new ManualClock();
  const open = () =>
    openDiskBuffer(
      { directory, integration, config, segmentBytes: 65_536 },
      testRuntime({ clock }),
      never,
      inProcess(nodeDisk(), undefined, lock),
    );
  const append = async (buffer: PointBuffer, input: string, value: number) => {
    const points = [{ input: input as InputId, time: epochMicros(1.7e15 + value), value }];
    const stored = buffer.append(points, { awaited: true }, never).then(
      () => "stored",
      (error: unknown) => (error instanceof AgentError ? error.code : String(error)),
    );
    await clock.advance(6);
    return await stored;
  };
  return { clock, open, append };
}

/** Creates the folder `other` with one point of `input`. */
async function makeOther(parent: { file(name: string): string }, input: string, integration?: string): Promise<void> {
  const { open, append } = buffersOn(parent.file("other"), integration);
  await using buffer = await open();
  expect(await append(buffer, input, 1)).toBe("stored");
}

/** Replaces this folder with `other`. */
function exchange(directory: string, parent: { file(name: string): string }): void {
  renameSync(directory, parent.file("elsewhere"));
  renameSync(parent.file("other"), directory);
}

async function contents(buffer: PointBuffer) {
  await using reader = await buffer.reader();
  const all: [string, number][] = [];
  for (;;) {
    const block = await reader.take("backlog", { wait: false, maxPoints: 1_000 }, never);
    if (!block) return all;
    for (const { input, values } of block.series) for (const value of values) all.push([input, value]);
  }
}

test("an input that is first seen while the folder is unmounted keeps its name", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  const { open, append } = buffersOn(directory);
  await using buffer = await open();
  expect(await append(buffer, "a", 1)).toBe("stored");
  renameSync(directory, parent.file("elsewhere"));
  expect(await append(buffer, "b", 2)).toBe("BUFFER_UNAVAILABLE");
  renameSync(parent.file("elsewhere"), directory);
  expect(await append(buffer, "b", 3)).toBe("stored");
  expect(await append(buffer, "c", 4)).toBe("stored");
  expect(await contents(buffer)).toEqual([
    ["a", 1],
    ["b", 3],
    ["c", 4],
  ]);
});

test("a reader gets no points of another integration, also when the folder was replaced", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  await makeOther(parent, "x", "factory");
  const { clock, open } = buffersOn(directory, "plant");
  await using buffer = await open();
  await using reader = await buffer.reader();
  exchange(directory, parent);
  await clock.advance(6_000);
  const block = await reader.take("backlog", { wait: false, maxPoints: 10 }, never).catch(() => undefined);
  expect(block?.series.map(({ input }) => input)).toBeUndefined();
});

test.runIf(has.symbolicLinks && has.removalOfOpenFiles)(
  "stored points are delivered although LOCK was deleted and cannot be created again",
  async () => {
    using parent = temporaryFolder();
    const directory = parent.file("buffer");
    const { clock, open, append } = buffersOn(directory);
    await using buffer = await open();
    expect(await append(buffer, "a", 1)).toBe("stored");
    await using reader = await buffer.reader();
    rmSync(`${directory}/LOCK`);
    // A dangling link simulates a volume without free inodes: the file does not exist and cannot be created.
    symlinkSync("/nowhere/at/all", `${directory}/LOCK`);
    await clock.advance(6_000);
    const block = await reader.take("backlog", { wait: false, maxPoints: 10 }, never);
    expect(block?.series.map(({ input }) => input)).toEqual(["a"]);
  },
);

test("a block leased from the former folder settles nothing in the folder that replaced it", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  await makeOther(parent, "a");
  // Afterwards both buffers have been opened equally often.
  const { clock, open, append } = buffersOn(directory);
  await (await open())[Symbol.asyncDispose]();
  await using buffer = await open();
  expect(await append(buffer, "a", 2)).toBe("stored");
  await using reader = await buffer.reader();
  const before = (await reader.take("backlog", { wait: false, maxPoints: 10 }, never))!;
  exchange(directory, parent);
  await clock.advance(6_000);
  const after = (await reader.take("backlog", { wait: false, maxPoints: 10 }, never))!;
  expect(after.series[0]?.values).toEqual(Float64Array.of(1));
  expect(after.id).not.toBe(before.id);
  await reader.settle([{ block: before.id, inputs: ["a" as InputId] }]);
  expect(buffer.stats()).toMatchObject({ settledPoints: 0, unsettledPoints: 1 });
});

test("a waiting reader gets the stored points once the folder is mounted again, without another append", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  const { clock, open, append } = buffersOn(directory);
  await using buffer = await open();
  expect(await append(buffer, "a", 1)).toBe("stored");
  await using reader = await buffer.reader();
  renameSync(directory, parent.file("elsewhere"));
  const stop = new AbortController();
  let given: string | undefined;
  const waiting = reader.take("backlog", { wait: true, maxPoints: 10 }, stop.signal).then(
    (block) => {
      given = block?.series[0]?.input;
    },
    () => {},
  );
  await clock.advance(6_000);
  renameSync(parent.file("elsewhere"), directory);
  await clock.advance(60_000);
  stop.abort();
  await waiting;
  expect(buffer.stats().degraded).toBeUndefined();
  expect(given).toBe("a");
});

test("a log that is reopened while its folder is unmounted does not create another folder in its place", async () => {
  using parent = temporaryFolder();
  const directory = parent.file("buffer");
  const crash = { now: false };
  const clock = new ManualClock();
  const open = inProcess(nodeDisk(), undefined, lockFolder);
  await using _buffer = await openDiskBuffer(
    { directory, integration: "plant", config, segmentBytes: 65_536 },
    testRuntime({ clock }),
    never,
    async (start, signal) => {
      const port = await open(start, signal);
      return {
        opened: port.opened,
        get failure() {
          return crash.now ? new AgentError("BUFFER_UNAVAILABLE", "the log thread has ended") : port.failure;
        },
        call: (request, transfer) => port.call(request, transfer),
        [Symbol.asyncDispose]: async () => {
          // As the log thread does when it ends.
          crash.now = false;
          await port.call({ kind: "close", now: { wall: 0, monotonic: 0 } }, []).catch(() => {});
        },
      };
    },
  );
  renameSync(directory, parent.file("elsewhere"));
  mkdirSync(directory);
  await clock.advance(4_000);
  crash.now = true;
  await clock.advance(4_000);
  expect(readdirSync(directory)).toEqual([]);
});

test("a segment that is missing from one listing of the folder is kept", () => {
  const memory = new MemoryDisk();
  let hidden: string | undefined;
  const disk: Disk = {
    makeFolder: (path) => memory.makeFolder(path),
    list: (path) => memory.list(path).filter((name) => name !== hidden),
    open: (path, mode) => memory.open(path, mode),
    remove: (path) => memory.remove(path),
    rename: (from, to) => memory.rename(from, to),
    syncFolder: (path) => memory.syncFolder(path),
    free: (path) => memory.free(path),
  };
  const { store } = openStore(disk);
  for (let i = 0; i < 20; i++)
    appendTo(
      store,
      Array.from({ length: 500 }, (_, k): Triple => ["a", 1.7e15 + i * 1e6 + k, Math.sin(i * 500 + k)]),
    );
  hidden = memory.list("/data/buffer").find((name) => name.startsWith("seg-"));
  expect(hidden).toBeDefined();
  store.tick(moment(10));
  hidden = undefined;
  expect(store.stats().losses).toEqual([]);
  expect(takeAll(store)).toHaveLength(10_000);
});
