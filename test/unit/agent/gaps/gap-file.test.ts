// The last sign of life holds, whatever happens to the file while it is written.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { GapFile, type Life, readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const sign = (turn: number, ...sources: readonly string[]): Life => ({
  // The clock is set back now and then.
  time: epochMicros(1_000_000 - turn),
  stopped: false,
  turn,
  sources: Object.fromEntries(sources.map((source) => [source, epochMicros(turn)])),
});

test("the last sign of life is read, also where the clock was set back or sources were removed", async () => {
  using folder = temporaryFolder();
  const file = new GapFile(folder.path);
  const many = Array.from({ length: 100 }, (_, i) => `source${i}`);
  for (const [turn, sources] of [["a"], many, ["a", "b"], ["c"], []].entries()) {
    await file.alive(sign(turn, ...sources));
    expect((await readGapFolder(folder.path)).life).toEqual(sign(turn, ...sources));
  }
});

test("a sign of life is written in place, and where it was torn the one before it holds", async () => {
  using folder = temporaryFolder();
  const file = new GapFile(folder.path);
  for (let turn = 1; turn <= 4; turn++) await file.alive(sign(turn, "line"));
  const files = readdirSync(folder.path).map((name) => folder.file(name));
  const before = files.map((path) => statSync(path));
  await file.alive(sign(5, "line"));
  expect(files.map((path) => [statSync(path).ino, statSync(path).size])).toEqual(
    before.map(({ ino, size }) => [ino, size]),
  );
  expect(readdirSync(folder.path)).toHaveLength(2);

  const written = files.find((path) => readFileSync(path, "utf8").includes('"turn":5')) ?? "";
  const bytes = readFileSync(written);
  for (let cut = 0; cut < 60; cut += 7) {
    writeFileSync(written, Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(bytes.length - cut)]));
    expect((await readGapFolder(folder.path)).life).toEqual(sign(4, "line"));
  }
});
