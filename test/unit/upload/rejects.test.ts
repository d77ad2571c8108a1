// Refused points are on disk before they count as settled.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync, truncateSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { RejectFiles, type RejectLine } from "../../../src/upload/rejects/reject-files.ts";
import { openRejects } from "../../../src/upload/rejects/rejects.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const reject = (value: number) => ({ input: "a" as InputId, time: 1e15 + value, value, code: -32602, reason: "no" });

test("while the rejects file cannot be written refused points wait, are counted, logged once, and written later", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const path = folder.file("rejects.ndjson");
  const kept: number[] = [];
  // A folder with the name of the file blocks it.
  mkdirSync(path);
  const rejects = await openRejects(path, runtime);
  for (const value of [1, 2]) await rejects.add([reject(value)], () => kept.push(value));
  expect([rejects.waiting, rejects.count, kept]).toEqual([2, 0, []]);
  await clock.advance(5_000);
  await rejects.flush();
  const errors = () => runtime.lines.filter(({ level }) => level === "error");
  expect(errors()).toMatchObject([{ fields: { points: 1, reason: expect.stringMatching(/EISDIR|EBADF/) } }]);
  rmdirSync(path);
  // Not at once: a full disk is not retried with every point.
  await rejects.flush();
  expect(kept).toEqual([]);
  await clock.advance(5_000);
  await rejects.flush();
  expect([rejects.waiting, rejects.count, kept]).toEqual([0, 2, [1, 2]]);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).value)).toEqual([1, 2]);
  await rejects.add([reject(3)], () => kept.push(3));
  expect([rejects.count, kept.at(-1), errors().length]).toEqual([3, 3, 1]);
  expect((await openRejects(path, runtime)).count).toBe(3);
});

test("points that are refused while others are written are synced together", async () => {
  using folder = temporaryFolder();
  const rejects = await openRejects(folder.file("rejects.ndjson"), testRuntime());
  await using any = await open(folder.file("any"), "w");
  const syncs = vi.spyOn(Object.getPrototypeOf(any) as FileHandle, "datasync");
  try {
    const kept: number[] = [];
    const values = Array.from({ length: 100 }, (_, i) => i);
    await Promise.all(values.map((value) => rejects.add([reject(value)], () => kept.push(value))));
    expect([kept, rejects.count]).toEqual([values, 100]);
    expect(syncs.mock.calls.length).toBeLessThanOrEqual(2);
  } finally {
    syncs.mockRestore();
  }
});

test("refused points of earlier runs are counted", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("rejects.ndjson"), "{}\n{}\n");
  writeFileSync(folder.file("rejects.1.ndjson"), "{}\n");
  expect((await openRejects(folder.file("rejects.ndjson"), testRuntime())).count).toBe(3);
});

test("a line truncated by a crash affects no later one, and stays when the others are sent again", async () => {
  using folder = temporaryFolder();
  const path = folder.file("rejects.ndjson");
  const cut = '{"at":"2026-01-01T00:00:00Z","inp';
  appendFileSync(path, cut);
  const rejects = await openRejects(path, testRuntime());
  await rejects.add([reject(7)], () => {});
  const files = new RejectFiles(folder.path);
  expect(await linesOf(files)).toMatchObject([undefined, { value: 7 }]);
  await files.takeOut();
  await files.putBack();
  expect(readFileSync(folder.file("rejects.1.ndjson"), "utf8")).toBe(`${cut}\n`);
});

test("refused points count as written only after the sync of their file, and a failed write leaves no line", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const path = folder.file("state/rejects.ndjson");
  const rejects = await openRejects(path, testRuntime({ clock }));
  const kept: number[] = [];
  {
    using sync = await syncs();
    sync.mockImplementation(() => Promise.reject(new Error("EIO")));
    await rejects.add([reject(1)], () => kept.push(1));
    expect(sync).toHaveBeenCalled();
  }
  expect([kept, rejects.waiting, readFileSync(path, "utf8")]).toEqual([[], 1, ""]);

  await clock.advance(5_000);
  using sync = await syncs();
  sync.mockImplementation(async () => {
    expect([kept, readFileSync(path, "utf8").includes('"value":1')]).toEqual([[], true]);
  });
  await rejects.flush();
  expect(sync).toHaveBeenCalled();
  expect([kept, rejects.waiting]).toEqual([[1], 0]);
});

test("refused points that come while others are written count as written only after a write of their own", async () => {
  using folder = temporaryFolder();
  const path = folder.file("rejects.ndjson");
  const rejects = await openRejects(path, testRuntime());
  const onDisk: [number, boolean][] = [];
  const kept = (value: number) => () =>
    void onDisk.push([value, readFileSync(path, "utf8").includes(`"value":${value},`)]);
  using sync = await syncs();
  let later: Promise<void> | undefined;
  sync.mockImplementation(async () => {
    later ??= rejects.add([reject(2)], kept(2));
  });
  await rejects.add([reject(1)], kept(1));
  await later;

  expect(onDisk).toEqual([
    [1, true],
    [2, true],
  ]);
  expect([rejects.count, rejects.waiting]).toEqual([2, 0]);
});

test("two files of 16 MiB are kept", async () => {
  using folder = temporaryFolder();
  const path = folder.file("rejects.ndjson");
  const rejects = await openRejects(path, testRuntime());
  await rejects.add([reject(1)], () => {});
  truncateSync(path, 16 * 2 ** 20 + 1);
  await rejects.add([reject(2)], () => {});

  expect(existsSync(folder.file("rejects.1.ndjson"))).toBe(true);
  expect(readFileSync(folder.file("rejects.1.ndjson"), "utf8")).toContain('"value":1,');
  expect(readFileSync(path, "utf8")).toMatch(/^\{.*"value":2,.*\}\n$/);
});

test("points without a time or number in JSON are written in readable form", async () => {
  using folder = temporaryFolder();
  const rejects = await openRejects(folder.file("rejects.ndjson"), testRuntime());
  await rejects.add([{ ...reject(Number.NaN), time: 2 ** 60 }, reject(5)], () => {});

  const lines = await linesOf(new RejectFiles(folder.path));
  expect(lines).toMatchObject([{ time: 2 ** 60, value: "NaN" }, { time: "2001-09-09T01:46:40.000005Z" }]);
});

test("refused points stay on disk while they are sent again, and the remaining ones afterwards", async () => {
  using folder = temporaryFolder();
  const rejects = await openRejects(folder.file("rejects.ndjson"), testRuntime());
  await rejects.add([reject(1), reject(2)], () => {});
  const files = new RejectFiles(folder.path);
  const values = async () => (await linesOf(files)).map((line) => line?.value);

  await files.takeOut();
  // A kill at this point resends nothing twice, because each point is on disk once.
  expect(await values()).toEqual([1, 2]);
  expect(existsSync(files.path)).toBe(false);

  using sync = await syncs();
  sync.mockImplementation(async () => {
    // The taken points stay until the remaining ones are on disk.
    expect(await values()).toEqual([2, 1]);
  });
  await files.putBack((line) => (line.value === 2 ? line : undefined));
  expect(sync).toHaveBeenCalled();
  expect(await values()).toEqual([2]);

  await files.drop();
  expect(await values()).toEqual([]);
});

test("a point that was refused again while the retry runs is listed once, with the new reason", async () => {
  using folder = temporaryFolder();
  const rejects = await openRejects(folder.file("rejects.ndjson"), testRuntime());
  await rejects.add([reject(1), reject(2)], () => {});
  const files = new RejectFiles(folder.path);
  await files.takeOut();
  await rejects.add([{ ...reject(2), reason: "still no" }], () => {});

  expect((await linesOf(files)).map((line) => [line?.value, line?.reason])).toEqual([
    [2, "still no"],
    [1, "no"],
  ]);
});

test("a list of refused points has all of them when the retry ends meanwhile", async () => {
  using folder = temporaryFolder();
  const rejects = await openRejects(folder.file("rejects.ndjson"), testRuntime());
  await rejects.add([reject(1), reject(2)], () => {});
  const files = new RejectFiles(folder.path);
  await files.takeOut();
  await rejects.add([{ ...reject(2), reason: "still no" }], () => {});
  const values: (number | string | undefined)[] = [];
  for await (const line of files.lines()) {
    if (values.length === 0) await files.putBack((line) => (line.value === 1 ? line : undefined));
    values.push(line?.value);
  }

  expect(values).toEqual([2, 1]);
});

async function linesOf(files: RejectFiles): Promise<readonly (RejectLine | undefined)[]> {
  const lines: (RejectLine | undefined)[] = [];
  for await (const line of files.lines()) lines.push(line);
  return lines;
}

/** Observes the syncs of all files that `node:fs/promises` opens. */
async function syncs() {
  await using any = await open(import.meta.filename);
  return vi.spyOn(Object.getPrototypeOf(any) as FileHandle, "datasync");
}
