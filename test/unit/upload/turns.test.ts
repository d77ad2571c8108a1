// Turns are files: one of several processes has its turn, and a killed process no longer has it.
import { mkdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { TurnFolder } from "../../../src/upload/client/pacer.ts";
import { expectMode } from "../../support/platform.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("one process has its turn at a time, per method, and passes the time of the next call to the other", async () => {
  using folder = temporaryFolder();
  const { log } = testRuntime();
  using agent = new TurnFolder(folder.path, log);
  using command = new TurnFolder(folder.path, log);
  const [mine, theirs] = [agent.of("integration.saveSignals")!, command.of("integration.saveSignals")!];
  expect([await mine.next(), mine.take(), theirs.take()]).toEqual([undefined, true, false]);
  expect(command.of("admin.selectSignals")?.take()).toBe(true);
  mine.callAgainAt(1);
  mine.callAgainAt(1_234.5);
  await mine.give();
  expect([theirs.take(), await theirs.next(), mine.take()]).toEqual([true, 1_234.5, false]);
  await theirs.give();
  await theirs.give();
  expect(mine.take()).toBe(true);
  expect(agent.of("integration.saveSignals")).toBe(mine);
  expectMode(folder.file("turns"), 0o700);
  for (const name of ["integration.saveSignals", "integration.saveSignals.lock"])
    expectMode(folder.file(`turns/${name}`), 0o600);
});

test("damaged files and files that cannot be created do not delay calls", async () => {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  mkdirSync(folder.file("turns"));
  writeFileSync(folder.file("turns/integration.saveSignals"), "so");
  writeFileSync(folder.file("turns/integration.saveSignals.lock"), "no database at all, and long enough".repeat(99));
  using damaged = new TurnFolder(folder.path, runtime.log);
  const turns = damaged.of("integration.saveSignals");
  expect([turns?.take(), await turns?.next()]).toEqual([true, undefined]);
  await turns?.give();
  using elsewhere = new TurnFolder(folder.file("turns/integration.saveSignals"), runtime.log);
  expect(elsewhere.of("admin.selectSignals")).toBeUndefined();
  expect(elsewhere.of("admin.selectSignals")).toBeUndefined();
  expect(runtime.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
    "warn: the permitted rate cannot be shared with commands for now",
  ]);
});
