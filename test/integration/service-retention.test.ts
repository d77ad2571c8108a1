import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("old points that cannot be deleted are reported, and deleted the next time", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock("2026-01-01T00:00:00Z");
  const runtime = testRuntime({ clock });
  await using service = await testService({ data: folder.path, retention: 86_400_000 }, runtime);
  const old = { times: ["2026-01-01T00:00:00Z"], series: { old: [1] } };
  expect((await service.call("integration.insert", { integration, data: old })).body?.error).toBeUndefined();
  await eventually(() => clock.sleeping > 0);
  // Another program has the file open and blocks writers.
  using other = new DatabaseSync(join(folder.path, "service.sqlite"));
  other.exec("BEGIN IMMEDIATE");
  const blocks = () => other.prepare("SELECT count(*) AS blocks FROM block").get()?.["blocks"];
  await clock.advance(10 * 86_400_000);
  const failures = () => runtime.lines.filter(({ message }) => message === "old points could not be deleted");
  // The deletion may have been tried more than once in those days.
  await eventually(() => failures().length > 0);
  expect((await service.call("platform.selectItems", {})).body?.result).toEqual({});
  expect(blocks()).toBe(1);
  other.exec("ROLLBACK");
  await eventually(() => clock.sleeping > 0);
  await clock.advance(600_000);
  await eventually(() => blocks() === 0);
});
