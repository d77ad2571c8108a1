import { chmodSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { lockFolder } from "../../src/buffer/disk/files/lock.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import type { TakeOptions } from "../../src/core/buffer.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { inProcess } from "../support/disk-store.ts";
import { MemoryDisk } from "../support/memory-disk.ts";
import { expectMode, has } from "../support/platform.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type BufferPlace, bufferContract } from "./buffer.ts";

const never = new AbortController().signal;
const config = bufferOptions.parse({ reserveFreeDisk: "0", sync: "20ms", ackDelay: "1ms" });

// Runs the log in this thread. V8 occasionally crashes a process in which threads start and end while another one
// compiles ("Check failed: jit_page.has_value()"), and the contract would start 20 of them in a row.
function onDisk(): BufferPlace {
  const home = temporaryFolder();
  const directory = home.file("new/data/buffer");
  return {
    open: (integration = "plant") =>
      openDiskBuffer(
        { directory, integration, config },
        testRuntime(),
        never,
        inProcess(nodeDisk(), undefined, lockFolder),
      ),
    [Symbol.asyncDispose]: async () => home[Symbol.dispose](),
  };
}

describe("the buffer on disk", () => {
  bufferContract(onDisk);
});

test("the log thread stores and delivers points, and only its user can read its folders", async () => {
  using home = temporaryFolder();
  const directory = home.file("new/buffer");
  await using buffer = await openDiskBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  await using reader = await buffer.reader();
  const given = reader.take("live", { wait: true, maxPoints: 10 }, never);

  await buffer.append([point(1), point(2)], { awaited: true }, never);
  const block = (await given)!;
  expect(block.series.map(({ input, times, values }) => [input, [...times], [...values]])).toEqual([
    ["a", [point(1).time, point(2).time], [1, 2]],
  ]);
  await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);

  expect(buffer.stats()).toMatchObject({ appendedPoints: 2, settledPoints: 2, unsettledPoints: 0 });
  for (const folder of [directory, dirname(directory)]) expectMode(folder, 0o700);
});

test("consecutive appends are each answered on their own, whatever other calls run meanwhile", async () => {
  using home = temporaryFolder();
  const brisk = bufferOptions.parse({ reserveFreeDisk: "0", ackDelay: "0" });
  const runtime = testRuntime();
  await using buffer = await openDiskBuffer(
    { directory: home.file("buffer"), integration: "plant", config: brisk },
    runtime,
    never,
  );
  await using reader = await buffer.reader();
  let delivered = 0;
  const deliver = async () => {
    const block = await reader.take("backlog", { wait: false, maxPoints: 40 }, never);
    if (!block) return;
    await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);
    delivered += block.series[0]!.values.length;
  };

  for (let i = 0; i < 200; i++) {
    const others = i % 20 === 19 ? [deliver(), deliver()] : [];
    await buffer.append([point(i)], { awaited: true }, never);
    expect(buffer.stats().appendedPoints).toBe(i + 1);
    await Promise.all(others);
  }
  while (delivered < 200) await deliver();

  expect(buffer.stats()).toMatchObject({ appendedPoints: 200, settledPoints: 200, unsettledPoints: 0 });
  expect(runtime.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("a folder that cannot be created is reported as unwritable", async () => {
  using home = temporaryFolder();
  writeFileSync(home.file("file"), "");
  if (has.permissionBits) chmodSync(home.file("file"), 0o400);

  const opening = openDiskBuffer(
    { directory: home.file("file/buffer"), integration: "plant", config },
    testRuntime(),
    never,
  );

  await expect(opening).rejects.toMatchObject({ code: "DATA_DIR_UNWRITABLE" });
});

const point = (second: number) => ({ input: "a" as InputId, time: epochMicros(1.7e15 + second * 1e6), value: second });

const named = (input: string, value: number) => ({ ...point(0), input: input as InputId, value });

async function gathering(ackDelay = "auto") {
  const disk = new MemoryDisk();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const options = {
    directory: "/data/buffer",
    integration: "plant",
    config: bufferOptions.parse({ ackDelay }),
    segmentBytes: 65_536,
  };
  const buffer = await openDiskBuffer(options, runtime, never, inProcess(disk));
  let syncs = 0;
  disk.fault = (call, path) => {
    if (call === "sync" && path.includes("seg-")) syncs++;
    return undefined;
  };
  return { disk, clock, buffer, runtime, syncs: () => syncs };
}

test("a log that has no points is asked again only after it may have some", async () => {
  let asked = 0;
  await using buffer = await openDiskBuffer(
    { directory: "/data/buffer", integration: "plant", config },
    testRuntime(),
    never,
    async (start, signal) => {
      const port = await inProcess(new MemoryDisk())(start, signal);
      const call = port.call.bind(port);
      port.call = (request, transfer) => {
        if (request.kind === "take") asked++;
        return call(request, transfer);
      };
      return port;
    },
  );
  await using reader = await buffer.reader();
  const take = async (more: Partial<TakeOptions> = {}) => {
    const block = await reader.take("backlog", { wait: false, maxPoints: 10, ...more }, never);
    return block && { id: block.id, found: block.series.map(({ input, values }) => `${input} ${[...values].join()}`) };
  };
  const append = (...points: Parameters<typeof named>[]) =>
    buffer.append(
      points.map((each) => named(...each)),
      { awaited: true },
      never,
    );

  for (let i = 0; i < 3; i++) expect(await take()).toBeUndefined();
  expect(asked).toBe(1);
  expect(await take({ inputs: [named("a", 1).input] })).toBeUndefined();
  expect(asked).toBe(2);

  await append(["a", 1], ["b", 1]);
  const first = await take();
  expect(first?.found).toEqual(["a 1", "b 1"]);
  await append(["a", 2], ["c", 2]);
  const late = await take();
  expect(late?.found).toEqual(["a 2", "c 2"]);
  const settle = (input: string) => reader.settle([{ block: late!.id, inputs: [input as InputId] }]);
  await settle("a");
  expect(await take()).toBeUndefined();
  reader.release([first!.id]);
  expect((await take())?.found).toEqual(["a 1", "b 1"]);
  expect(await take()).toBeUndefined();
  // The point of `a` may replace one that returned to the log, and so it returns with the rest of its block.
  await settle("c");
  expect((await take())?.found).toEqual(["a 2"]);
});

test("an append resolves with its sync: after ackDelay where a device waits, otherwise within `sync`", async () => {
  const { clock, buffer } = await gathering();
  const done: string[] = [];
  void buffer.append([point(1)], { awaited: false }, never).then(() => done.push("polled"));
  await clock.advance(240);
  expect(done).toEqual([]);
  await clock.advance(20);
  expect(done).toEqual(["polled"]);

  void buffer.append([point(2)], { awaited: false }, never).then(() => done.push("along"));
  void buffer.append([point(3)], { awaited: true }, never).then(() => done.push("awaited"));
  await clock.advance(4);
  expect(done).toEqual(["polled"]);
  await clock.advance(2);
  expect(done).toEqual(["polled", "along", "awaited"]);
});

test("an append whose source signals urgency waits longer for others, and not at all once it signals", async () => {
  const { clock, buffer } = await gathering();
  const done: string[] = [];
  const append = (second: number, hurry: Promise<void>) =>
    buffer.append([point(second)], { awaited: true, hurry }, never).then(() => done.push(`at ${second}`));
  const calm = new Promise<void>(() => {});
  const hurry = Promise.withResolvers<void>();
  void append(1, calm);
  await clock.advance(49);
  expect(done).toEqual([]);
  await clock.advance(2);
  expect(done).toEqual(["at 1"]);

  void append(2, calm);
  void append(3, hurry.promise);
  await clock.advance(10);
  hurry.resolve();
  await clock.advance(1);
  expect(done).toEqual(["at 1", "at 2", "at 3"]);
});

test("ackDelay bounds the wait whatever the source signals", async () => {
  const { clock, buffer } = await gathering("2ms");
  let isDone = false;
  const hurry = new Promise<void>(() => {});
  void buffer.append([point(1)], { awaited: true, hurry }, never).then(() => (isDone = true));
  await clock.advance(1);
  expect(isDone).toBe(false);
  await clock.advance(2);
  expect(isDone).toBe(true);
});

test("many appends share one sync, and a large append does not wait", async () => {
  const { clock, buffer, syncs } = await gathering();
  const before = syncs();
  const appends = Array.from({ length: 30 }, (_, i) => buffer.append([point(i)], { awaited: true }, never));
  await clock.advance(6);
  await Promise.all(appends);
  // One for the header of the new segment, one for all points.
  expect(syncs() - before).toBe(2);

  await buffer.append(
    Array.from({ length: 5_000 }, (_, i) => point(100 + i)),
    { awaited: false },
    never,
  );
});

test("nothing is acknowledged when the sync fails, and the caller's retry stores the points once", async () => {
  const { disk, clock, buffer } = await gathering();
  disk.fault = (call, path) => {
    if (call === "sync" && path.includes("seg-"))
      throw Object.assign(new Error("EIO: input/output error"), { code: "EIO" });
    return undefined;
  };
  const failing = expect(buffer.append([point(1)], { awaited: true }, never)).rejects.toMatchObject({
    code: "BUFFER_UNAVAILABLE",
  });
  await clock.advance(6);
  await failing;
  expect(buffer.stats().degraded).toContain("EIO");

  disk.fault = () => undefined;
  const again = buffer.append([point(1)], { awaited: true }, never);
  await clock.advance(6);
  await again;
  expect(buffer.stats()).toMatchObject({ appendedPoints: 1, duplicatePoints: 0, degraded: undefined });
});

test("a settlement is on disk within ten seconds", async () => {
  const { disk, clock, buffer, runtime } = await gathering();
  const appended = buffer.append([point(1)], { awaited: true }, never);
  await clock.advance(6);
  await appended;
  await using reader = await buffer.reader();
  const block = (await reader.take("live", { wait: false, maxPoints: 10 }, never))!;
  await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);
  await clock.advance(10_000);

  const options = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 65_536 };
  const after = await openDiskBuffer(
    options,
    testRuntime({ clock }),
    never,
    inProcess(disk.afterPowerCut(() => false)),
  );
  expect(after.stats()).toMatchObject({ settledPoints: 1, unsettledPoints: 0 });
  expect(runtime.metric("buffer_settled_points_total")).toBe(1);
});

test("a time that is not a whole number of microseconds is refused", async () => {
  const { buffer } = await gathering();
  const wrong = { ...point(1), time: 1.5 as ReturnType<typeof epochMicros> };

  await expect(buffer.append([wrong], { awaited: true }, never)).rejects.toThrow(TypeError);
});

test("a log thread that ended is started again, and its points are still stored", async () => {
  const disk = new MemoryDisk();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const options = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 65_536 };
  const crash = { now: false };
  const buffer = await openDiskBuffer(options, runtime, never, (start, signal) => {
    crash.now = false;
    return inProcess(disk, crash)(start, signal);
  });
  await using reader = await buffer.reader();
  const before = buffer.append([point(1)], { awaited: true }, never);
  await clock.advance(6);
  await before;
  const block = (await reader.take("live", { wait: false, maxPoints: 10 }, never))!;

  crash.now = true;
  const meanwhile = expect(buffer.append([point(2)], { awaited: true }, never)).rejects.toMatchObject({
    code: "BUFFER_UNAVAILABLE",
  });
  await clock.advance(6);
  await meanwhile;
  await clock.advance(2_000);
  const after = buffer.append([point(2)], { awaited: true }, never);
  await clock.advance(6);
  await after;

  // The former reader's block is no longer leased, and its points are delivered again.
  await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);
  const values: number[] = [];
  for (let next = await reader.take("backlog", { wait: false, maxPoints: 10 }, never); next; ) {
    values.push(...next.series.flatMap((series) => [...series.values]));
    next = await reader.take("backlog", { wait: false, maxPoints: 10 }, never);
  }
  expect(values).toEqual([1, 2]);
  expect(buffer.stats()).toMatchObject({ appendedPoints: 2, settledPoints: 0, degraded: undefined });
  expect(runtime.lines.some(({ message }) => message === "the log thread had to be started again")).toBe(true);
});

test("points keep their input when the log thread ended between two blocks", async () => {
  const disk = new MemoryDisk();
  const clock = new ManualClock();
  const crash = { now: false };
  const options = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 65_536 };
  const buffer = await openDiskBuffer(options, testRuntime({ clock }), never, (start, signal) => {
    crash.now = false;
    return inProcess(disk, crash)(start, signal);
  });
  await using reader = await buffer.reader();
  const taken = async () => {
    const block = (await reader.take("backlog", { wait: false, maxPoints: 20_000 }, never))!;
    const inputs = block.series.map(({ input }) => input);
    await reader.settle([{ block: block.id, inputs }]);
    return inputs;
  };
  const stored = async (input: string, points: number) => {
    const all = Array.from({ length: points }, (_, i) => ({
      ...point(i),
      value: Math.sin(i),
      input: input as InputId,
    }));
    const storing = buffer.append(all, { awaited: true }, never);
    await clock.advance(6);
    await storing;
  };
  // More points than fit into a segment, which is removed when they are settled.
  await stored("a", 8_000);
  while (buffer.stats().unsettledPoints > 0) expect(await taken()).toEqual(["a"]);
  await stored("b", 1);

  crash.now = true;
  await clock.advance(4_000);

  expect(await taken()).toEqual(["b"]);
});
