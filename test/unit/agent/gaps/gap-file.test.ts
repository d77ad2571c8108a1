// The last heartbeat is read, whatever interrupts the writing of the file.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { GapFile, type Life, readGapFolder, signOfLife } from "../../../../src/agent/gaps/gap-file.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { ManualClock } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const sign = (turn: number, ...sources: readonly string[]): Life => ({
  // The clock runs backwards, as if it were set back each time.
  time: epochMicros(1_000_000 - turn),
  stopped: false,
  turn,
  sources: Object.fromEntries(sources.map((source) => [source, epochMicros(turn)])),
});

test("the last heartbeat is read, also after the clock was set back or sources were removed", async () => {
  using folder = temporaryFolder();
  const file = new GapFile(folder.path);
  const many = Array.from({ length: 100 }, (_, i) => `source${i}`);
  for (const [turn, sources] of [["a"], many, ["a", "b"], ["c"], []].entries()) {
    await file.alive(sign(turn, ...sources));
    expect((await readGapFolder(folder.path)).life).toEqual(sign(turn, ...sources));
  }
});

test("a heartbeat is written in place, and after a torn write the previous one applies", async () => {
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

test("a heartbeat is complete on disk, also when names have multi-byte characters", async () => {
  using folder = temporaryFolder();
  const file = new GapFile(folder.path);
  for (let letters = 380; letters < 520; letters += 10) {
    const given = sign(2, "ü".repeat(letters));
    await file.alive(given);
    expect((await readGapFolder(folder.path)).life).toEqual(given);
  }
});

test("a longer heartbeat is not written over the last one, which a full disk would tear", async () => {
  using folder = temporaryFolder();
  const file = new GapFile(folder.path);
  await file.alive(sign(2, "line"));
  const { ino } = statSync(folder.file("alive.json"));
  await file.alive(sign(4, ...Array.from({ length: 100 }, (_, i) => `source${i}`)));
  expect(statSync(folder.file("alive.json")).ino).not.toBe(ino);
  expect(readdirSync(folder.path)).toEqual(["alive.json"]);
});

test("a version with a single heartbeat file may run before, in between and after", async () => {
  using folder = temporaryFolder();
  const path = folder.file("alive.json");
  const clock = new ManualClock();
  const ofBefore = () =>
    writeFileSync(
      path,
      JSON.stringify({ time: clock.now(), stopped: true, monotonic: 1, sources: { line: clock.now() } }),
    );
  for (let runs = 0; runs < 4; runs++) {
    ofBefore();
    const { life: former } = await readGapFolder(folder.path);
    expect(former?.time).toBe(clock.now());
    const signs = signOfLife(former, clock);
    signs.runs("line", () => clock.now());
    const file = new GapFile(folder.path);
    for (let beats = 0; beats < 3 + runs; beats++) {
      const given = signs.next(beats === 2 + runs);
      if (given) await file.alive(given);
      expect((await readGapFolder(folder.path)).life).toEqual(given);
      if (given?.stopped) expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(given);
      await clock.advance(10_000);
    }
  }
});

test("a heartbeat is written every 10 s, however early in its second the timer fires", async () => {
  const clock = new ManualClock();
  const signs = signOfLife(undefined, clock);
  await clock.advance(3);
  expect(signs.next(false)).toBeDefined();
  await clock.advance(8_999);
  expect(signs.next(false)).toBeUndefined();
  await clock.advance(999);
  expect(signs.next(false)).toBeDefined();
});
