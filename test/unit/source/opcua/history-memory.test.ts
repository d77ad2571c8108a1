// What a restart knows after a kill.
import { copyFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { openHistoryMemory } from "../../../../src/source/opcua/history/history-memory.ts";
import { eventually } from "../../../support/eventually.ts";
import { type TemporaryFolder, temporaryFolder } from "../../../support/temporary-folder.ts";

const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const seconds = (count: number) => epochMicros(start + count * 1e6);
const keys = ["nsu=urn:line;s=Temp", "nsu=urn:line;s=Count"];

/**
 * Saves that the values of two nodes are stored up to 0 s. Then those of one are stored up to 5 s, without another
 * save.
 */
async function killed(folder: TemporaryFolder) {
  const path = folder.file("history.json");
  const memory = await openHistoryMemory(path);
  for (const key of keys) memory.stored(key, seconds(0));
  await memory.save();
  memory.stored("nsu=urn:line;s=Temp", seconds(5));
  const known = async () => {
    const next = await openHistoryMemory(path);
    return keys.map((key) => next.storedUpTo(key));
  };
  await eventually(async () => (await known())[0] === seconds(5));
  return {
    times: folder.file("history.times"),
    memory,
    known,
    [Symbol.asyncDispose]: () => memory[Symbol.asyncDispose](),
  };
}

test("a killed process leaves the time up to which values are stored, including the last one", async () => {
  using folder = temporaryFolder();
  await using former = await killed(folder);
  const { known } = former;
  expect(await known()).toEqual([seconds(5), seconds(0)]);
});

test.each<[string, (times: string) => void]>([
  ["is gone", (times) => rmSync(times)],
  ["was cut off by a power cut", (times) => truncateSync(times, 12)],
  ["is empty where a power cut left zeros", (times) => writeFileSync(times, Buffer.alloc(24))],
])("without the times, where the file %s, what was written down before counts", async (_, damage) => {
  using folder = temporaryFolder();
  await using former = await killed(folder);
  const { times, known } = former;
  damage(times);
  expect(await known()).toEqual([seconds(0), seconds(0)]);
});

test("times of other nodes, and older ones, are ignored", async () => {
  using folder = temporaryFolder();
  await using former = await killed(folder);
  const { times, memory, known } = former;
  copyFileSync(times, folder.file("old"));
  memory.stored("nsu=urn:line;s=Temp", seconds(9));
  await memory.save();
  copyFileSync(folder.file("old"), times);
  expect(await known()).toEqual([seconds(9), seconds(0)]);
  memory.stored("nsu=urn:line;s=More", seconds(20));
  await memory.save();
  copyFileSync(folder.file("old"), times);
  expect(await known()).toEqual([seconds(9), seconds(0)]);
});
