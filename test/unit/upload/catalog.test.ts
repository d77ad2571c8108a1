// The list of signals: kept across restarts, and a damaged file does not stop delivery.
import { existsSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { InputId, SignalId } from "../../../src/core/point.ts";
import { type Catalog, openCatalog } from "../../../src/upload/signals/catalog.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const never = new AbortController().signal;
const a = "a" as InputId;
const id = "c8ktonqsahsmemfs7lv1" as SignalId;
const open = (path: string, runtime = testRuntime()): Promise<Catalog> => openCatalog(path, runtime, never);

test("described, saved and learned metadata are known after a restart", async () => {
  using folder = temporaryFolder();
  {
    await using catalog = await open(folder.file("signals.db"));
    catalog.bind("here");
    catalog.describe(a, { engUnit: "°C", labels: { x: ["1"] } });
    catalog.describe("b" as InputId, {});
    catalog.markSaved(a, catalog.entry(a)?.hash ?? "", id);
    catalog.learn("c" as InputId, id);
  }
  await using catalog = await open(folder.file("signals.db"));
  catalog.bind("here");
  expect(catalog.entry(a)).toMatchObject({ signal: { engUnit: "°C", labels: { x: ["1"] } }, saved: true, id });
  expect(catalog.entry("c" as InputId)).toMatchObject({ signal: undefined, saved: false, id });
  expect([catalog.size, catalog.savedCount, [...catalog.pending]]).toEqual([3, 1, ["b"]]);
  catalog.describe(a, { labels: { x: ["1"] }, engUnit: "°C" });
  expect([...catalog.pending]).toEqual(["b"]);
});

test("for another service or integration all metadata are pending", async () => {
  using folder = temporaryFolder();
  {
    await using catalog = await open(folder.file("signals.db"));
    catalog.bind("here");
    catalog.describe(a, {});
    catalog.markSaved(a, catalog.entry(a)?.hash ?? "", id);
  }
  await using catalog = await open(folder.file("signals.db"));
  catalog.bind("there");
  expect(catalog.entry(a)).toMatchObject({ saved: false, id: undefined });
  expect([...catalog.pending]).toEqual([a]);
});

test("metadata that change while they are saved stay pending", async () => {
  using folder = temporaryFolder();
  await using catalog = await open(folder.file("signals.db"));
  catalog.describe(a, { engUnit: "V" });
  const sent = catalog.entry(a)?.hash ?? "";
  catalog.describe(a, { engUnit: "mV" });
  catalog.markSaved(a, sent, id);
  expect([...catalog.pending]).toEqual([a]);
  catalog.describe(a, { engUnit: "V" });
  expect([...catalog.pending]).toEqual([]);
});

test("refused metadata are not pending until they change", async () => {
  using folder = temporaryFolder();
  await using catalog = await open(folder.file("signals.db"));
  catalog.describe(a, { engUnit: "V" });
  catalog.markRefused(a, catalog.entry(a)?.hash ?? "", "no");
  expect([[...catalog.pending], [...catalog.refused]]).toEqual([[], [[a, "no"]]]);
  catalog.describe(a, { engUnit: "V" });
  expect([...catalog.pending]).toEqual([]);
  catalog.describe(a, { engUnit: "mV" });
  expect([[...catalog.pending], [...catalog.refused]]).toEqual([[a], []]);
});

test.for([
  ["is no database", (path: string) => writeFileSync(path, "hello, this is not a database".repeat(100))],
  ["is cut off", (path: string) => truncateSync(path, 5_000)],
  [
    "is full of noise",
    (path: string) => writeFileSync(path, Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(9_000, 0xa5)])),
  ],
] as const)("a file that %s is set aside and a new list begun", async ([, damage]) => {
  using folder = temporaryFolder();
  const path = folder.file("signals.db");
  {
    await using catalog = await open(path);
    for (let i = 0; i < 500; i++) catalog.describe(`tag${i}` as InputId, { description: "x".repeat(100) });
  }
  damage(path);
  const runtime = testRuntime();
  {
    await using catalog = await open(path, runtime);
    catalog.describe(a, { engUnit: "V" });
    expect(catalog.size).toBe(1);
  }
  expect(runtime.lines.map(({ level, message }) => [level, message])).toEqual([
    ["warn", "the list of signals was damaged; a new one was created"],
  ]);
  expect(existsSync(`${path}.damaged`)).toBe(true);
  await using catalog = await open(path);
  expect(catalog.entry(a)).toMatchObject({ signal: { engUnit: "V" } });
});

test("the list works in memory while no file can be written", async () => {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  await using catalog = await open(folder.file("no/such/folder/signals.db"), runtime);
  catalog.describe(a, { engUnit: "V" });
  expect(catalog.entry(a)?.signal).toEqual({ engUnit: "V" });
  expect(runtime.lines.map(({ message }) => message)).toEqual(["the list of signals is kept in memory alone"]);
});

test("many signals are written in slices and read again", async () => {
  using folder = temporaryFolder();
  const inputs = Array.from({ length: 20_000 }, (_, i) => `area/line${i % 50}/machine.${i}` as InputId);
  {
    await using catalog = await open(folder.file("signals.db"));
    for (const input of inputs) catalog.describe(input, { engUnit: "V", description: input });
    expect(catalog.pending.size).toBe(20_000);
  }
  await using catalog = await open(folder.file("signals.db"));
  expect([catalog.size, catalog.pending.size]).toEqual([20_000, 20_000]);
  expect(catalog.entry(inputs[17_777]!)?.signal).toEqual({ engUnit: "V", description: inputs[17_777] });
  expect(readdirSync(folder.path).length).toBeLessThanOrEqual(3);
});
