// After a kill it is known up to which message each subscription is on disk. The position is never too high.
import { readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openPositions } from "../../../../src/source/opcua/publishing/positions.ts";
import { has } from "../../../support/platform.ts";
import { runs } from "../../../support/property.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const { log } = testRuntime();
const first = { id: 1, started: "2026-03-01T12:00:00.000Z" };
const second = { id: 2, started: "2026-03-01T12:00:00.000Z" };

test("a new subscription begins at message 1, a resumed one after the last message on disk", async () => {
  using folder = temporaryFolder();
  const path = folder.file("state/positions.json");
  await using positions = await openPositions(path, log);
  expect(positions.next(first)).toBeUndefined();
  await positions.begin([first, second], []);
  expect(positions.next(first)).toBe(1);
  await positions.reached(first, 7);
  // A repeated message does not move the position back. The sequence number after the highest is 1.
  await positions.reached(first, 3);
  await positions.reached(second, 4_294_967_295);
  await using later = await openPositions(path, log);
  expect([later.next(first), later.next(second)]).toEqual([8, 1]);
  await later.begin([second], [first]);
  expect((await openPositions(path, log)).next(first)).toBe(8);
  await later.begin([], [second]);
  expect((await openPositions(path, log)).next(first)).toBeUndefined();
});

test("closing waits until every reached position is written", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  await writeFile(path, "");
  const positions = await openPositions(path, log);
  void positions.reached(first, 1);
  void positions.reached(second, 5);
  await positions[Symbol.asyncDispose]();

  // Read synchronously, so that a write still under way has no time to end.
  const text = readFileSync(path, "utf8");
  expect(text).toContain(":2");
  expect(text).toContain(":6");
});

test("positions of another agent may be outdated until this one has stored a message", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  const lagging = async (agent: string, takeover?: number) => {
    const positions = await openPositions(path, log, { agent, takeover });
    return [first, second].map((subscription) => positions.lags(subscription));
  };
  await using former = await openPositions(path, log, { agent: "gw1" });
  await former.begin([first, second], []);
  expect(await lagging("gw1")).toEqual([false, false]);
  expect(await lagging("gw2")).toEqual([true, true]);

  await using next = await openPositions(path, log, { agent: "gw2", takeover: 1 });
  await next.begin([], [first, second]);
  await next.reached(first, 7);
  expect([next.lags(first), next.lags(second)]).toEqual([false, true]);
  // A connection that ends before the first message of the second subscription changes nothing.
  expect(await lagging("gw2", 1)).toEqual([false, true]);
  expect(await lagging("gw2")).toEqual([false, true]);
  // Another agent has read meanwhile, and was killed before it wrote.
  expect(await lagging("gw2", 2)).toEqual([true, true]);
});

test("a file of many subscriptions stays readable when few are left, in this run and in the next one", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  const many = Array.from({ length: 200 }, (_, id) => ({ ...first, id }));
  await using positions = await openPositions(path, log);
  await positions.begin(many, []);
  await positions.begin([], [first]);
  expect((await openPositions(path, log)).next(first)).toBe(1);

  await positions.begin(many, []);
  await using later = await openPositions(path, log);
  await later.begin([], [second]);
  expect((await openPositions(path, log)).next(second)).toBe(1);
});

test("a restarted server gives the same ID to another subscription", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  await using positions = await openPositions(path, log);
  await positions.begin([first], []);
  await positions.reached(first, 7);
  expect((await openPositions(path, log)).next({ ...first, started: "later" })).toBeUndefined();
});

test("whenever the process dies, the written position is the reached one or the next", async () => {
  using folder = temporaryFolder();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 12 }), async (bursts) => {
      const path = folder.file(`positions${run++}.json`);
      await using positions = await openPositions(path, log);
      await positions.begin([first], []);
      let reached = 0;
      for (const burst of bursts) {
        const writes = Array.from({ length: burst }, (_, i) => positions.reached(first, reached + i + 1));
        await writes[0];
        const found = (await openPositions(path, log)).next(first) ?? 0;
        expect(found).toBeGreaterThan(reached + 1);
        expect(found).toBeLessThanOrEqual(reached + burst + 1);
        await Promise.all(writes);
        reached += burst;
      }
      expect((await openPositions(path, log)).next(first)).toBe(reached + 1);
    }),
    runs(20),
  );
});

test("an unreadable file counts as missing, and an unwritable one is logged once", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  await writeFile(path, '{"version":1,"next":{"1 ');
  expect((await openPositions(path, log)).next(first)).toBeUndefined();
  const blocked = folder.file("blocked");
  await mkdir(blocked);
  const runtime = testRuntime();
  const positions = await openPositions(blocked, runtime.log);
  await positions.begin([first], []);
  await positions.reached(first, 1);
  expect(runtime.lines.map(({ level }) => level)).toEqual(["warn"]);
  expect(positions.next(first)).toBe(2);
});

function replace(path: string): void {
  writeFileSync(`${path}.new`, "{}".padEnd(4_096));
  renameSync(`${path}.new`, path);
}

test.each<readonly [string, (path: string) => void]>([
  ["was removed", (path) => rmSync(path)],
  ...(has.removalOfOpenFiles ? ([["was replaced", replace]] as const) : []),
])("a file that %s is written all the same", async (_, harm) => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  await using positions = await openPositions(path, log);
  await positions.begin([first], []);
  harm(path);
  await positions.reached(first, 7);
  expect((await openPositions(path, log)).next(first)).toBe(8);
});

test.runIf(has.linuxFiles)("positions refused by a full disk are written with the next ones", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  const runtime = testRuntime();
  await using positions = await openPositions(path, runtime.log);
  symlinkSync("/dev/full", path);
  await positions.begin([first, second], []);
  await positions.reached(first, 3);
  expect(runtime.lines.map(({ level }) => level)).toEqual(["warn"]);
  rmSync(path);
  await positions.reached(second, 7);
  const later = await openPositions(path, log);
  expect([later.next(first), later.next(second)]).toEqual([4, 8]);
});

test.runIf(has.linuxFiles)("the file stays open and is closed at the end, also after a later position", async () => {
  using folder = temporaryFolder();
  const path = folder.file("positions.json");
  const isOpen = () => openFiles().includes(path);
  const positions = await openPositions(path, log);
  await positions.begin([first], []);
  expect(isOpen()).toBe(true);
  await positions[Symbol.asyncDispose]();
  expect(isOpen()).toBe(false);
  await positions.reached(first, 7);
  expect(isOpen()).toBe(false);
  expect((await openPositions(path, log)).next(first)).toBe(8);
});

function openFiles(): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((number) => {
    try {
      return [readlinkSync(`/proc/self/fd/${number}`)];
    } catch {
      // The descriptor of the folder itself, which is closed by now.
      return [];
    }
  });
}
