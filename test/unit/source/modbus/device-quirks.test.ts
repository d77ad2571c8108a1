import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadDeviceQuirks } from "../../../../src/source/modbus/polling/device-quirks.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const cut = (address: number) => ({ table: "hr", address }) as const;

test("learned limits are restored per unit, each once", async () => {
  using folder = temporaryFolder();
  const stateDir = folder.file("sources/bus1");
  const runtime = testRuntime({ clock: new ManualClock() });
  const quirks = await loadDeviceQuirks(stateDir, runtime);
  for (const address of [4, 7, 4]) quirks.add(1, cut(address));
  quirks.add(2, cut(9));
  await quirks.saved();

  const again = await loadDeviceQuirks(stateDir, runtime);

  expect([again.cuts(1), again.cuts(2), again.cuts(3)]).toEqual([[cut(4), cut(7)], [cut(9)], []]);
  expect(runtime.lines).toEqual([]);
});

test("learned limits expire after a day, also when the clock was set back", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const quirks = await loadDeviceQuirks(folder.path, testRuntime({ clock }));
  for (const unit of [1, 2]) quirks.add(unit, cut(4));
  await clock.advance(23 * 3_600_000);
  expect(quirks.cuts(1)).toEqual([cut(4)]);
  await clock.advance(2 * 3_600_000);
  expect(quirks.cuts(1)).toEqual([]);
  clock.stepWall(-365 * 86_400_000);
  expect(quirks.cuts(2)).toEqual([]);
  await quirks.saved();
});

test("a damaged file and an unwritable folder are only reported", async () => {
  using folder = temporaryFolder();
  await writeFile(join(folder.path, "learned.json"), "{ torn");
  const runtime = testRuntime();
  const quirks = await loadDeviceQuirks(folder.path, runtime);
  expect(quirks.cuts(1)).toEqual([]);
  expect(runtime.lines.map((line) => line.message)).toEqual(["what was learned of the devices cannot be read"]);
  quirks.add(1, cut(4));
  await quirks.saved();
  expect(JSON.parse(await readFile(join(folder.path, "learned.json"), "utf8"))).toMatchObject({ version: 1 });

  const nowhere = await loadDeviceQuirks(join(import.meta.filename, "nowhere"), runtime);
  nowhere.add(1, cut(4));
  await nowhere.saved();
  expect(runtime.lines.at(-1)).toMatchObject({
    level: "warn",
    message: "what was learned of the devices cannot be kept",
  });
});

test("answers that may still arrive on a bus are known on the next connection, for ten minutes", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const request = { unit: 3, table: "hr", start: 0, count: 2 } as const;
  const first = await loadDeviceQuirks(folder.path, runtime);
  first.lateReplies.add(request);
  await first.saved();

  const second = await loadDeviceQuirks(folder.path, runtime);
  expect(second.lateReplies.isAmbiguous(request)).toBe(true);
  await clock.advance(11 * 60_000);
  expect((await loadDeviceQuirks(folder.path, runtime)).lateReplies.count(3)).toBe(0);
  second.lateReplies.settle(3);
  await second.saved();
  expect(await readFile(join(folder.path, "learned.json"), "utf8")).not.toContain("doubts");
});
