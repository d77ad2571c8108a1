// Refused points are written down before they count as settled.
import { appendFileSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { RejectFiles, type RejectLine } from "../../../src/upload/reject-files.ts";
import { Rejects } from "../../../src/upload/rejects.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const reject = (value: number) => ({ input: "a" as InputId, time: 1e15 + value, value, code: -32602, reason: "no" });

test("while nothing can be written refused points wait, are counted, said once, and written when it can", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const path = folder.file("rejects.ndjson");
  const kept: number[] = [];
  // What stands in the way of a file of this name.
  mkdirSync(path);
  const rejects = await Rejects.open(path, runtime);
  for (const value of [1, 2]) await rejects.add([reject(value)], () => kept.push(value));
  expect([rejects.waiting, rejects.count, kept]).toEqual([2, 0, []]);
  await clock.advance(5_000);
  await rejects.flush();
  const errors = () => runtime.lines.filter(({ level }) => level === "error");
  expect(errors()).toMatchObject([{ fields: { points: 1, reason: expect.stringContaining("EISDIR") } }]);
  rmdirSync(path);
  // Not at once: a disk that is full is not asked with every point.
  await rejects.flush();
  expect(kept).toEqual([]);
  await clock.advance(5_000);
  await rejects.flush();
  expect([rejects.waiting, rejects.count, kept]).toEqual([0, 2, [1, 2]]);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).value)).toEqual([1, 2]);
  await rejects.add([reject(3)], () => kept.push(3));
  expect([rejects.count, kept.at(-1), errors().length]).toEqual([3, 3, 1]);
  expect((await Rejects.open(path, runtime)).count).toBe(3);
});

test("refused points of before are counted", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("rejects.ndjson"), "{}\n{}\n");
  writeFileSync(folder.file("rejects.1.ndjson"), "{}\n");
  expect((await Rejects.open(folder.file("rejects.ndjson"), testRuntime())).count).toBe(3);
});

test("a line that a crash cut short takes no later one with it, and stays when the others are sent again", async () => {
  using folder = temporaryFolder();
  const path = folder.file("rejects.ndjson");
  const cut = '{"at":"2026-01-01T00:00:00Z","inp';
  appendFileSync(path, cut);
  const rejects = await Rejects.open(path, testRuntime());
  await rejects.add([reject(7)], () => {});
  const files = new RejectFiles(folder.path);
  const lines: (RejectLine | undefined)[] = [];
  for await (const line of files.lines()) lines.push(line);
  expect(lines).toMatchObject([undefined, { value: 7 }]);
  await files.takeOut(lines.filter((line) => line !== undefined));
  await files.putBack([]);
  expect(readFileSync(folder.file("rejects.1.ndjson"), "utf8")).toBe(`${cut}\n`);
});
