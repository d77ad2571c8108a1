// A server's history fills gaps: values that its queue discarded, and values from the time when the agent was stopped.
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { hurriedClock } from "../support/hurried-clock.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const insecure = { security: { mode: "none" } };
const tags = [{ node: `nsu=${lineNamespace};s=Temp` }];

/** Reads the history after a quarter of the usual delays. */
const hurried = () => testRuntime({ clock: hurriedClock(4) });

test("values discarded by the server's queue or missed while the agent was stopped are filled from its history", {
  timeout: 120_000,
}, async () => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  const stateDir = own.file("state");
  const options = { url: server.url, ...insecure, backfill: { maxGap: "1h" } };
  const slow = { ...options, subscription: { publishing: "700ms", queue: 2 } };
  // Each value gets its own source timestamp, even within one millisecond.
  let last = 0;
  const set = (value: number) => {
    last = Math.max(Date.now(), last + 1);
    server.set("Temp", value, new Date(last));
  };
  {
    await using line = collect(await openOpcuaSource({ stateDir, options: slow, tags, runtime: hurried() }));
    await eventually(() => line.values(0).length > 0);
    const burst: number[] = [];
    // Waits until each value is sampled, so that it enters the queue, and repeats until the queue overflows.
    await eventually(async () => {
      const value = 101 + burst.length;
      burst.push(value);
      set(value);
      await eventually(() => server.temps.has(value));
      return Number(line.source.details?.().overflows) > 0;
    }, 30_000);
    await eventually(() => burst.every((value) => line.values(0).includes(value)), 30_000);
    expect(line.readings.some(({ historical }) => historical)).toBe(true);
  }
  server.endSessions();
  const away = [2_001, 2_002, 2_003];
  for (const value of [...away, 2_004]) set(value);
  await using line = collect(await openOpcuaSource({ stateDir, options, tags, runtime: hurried() }));
  await eventually(() => away.every((value) => line.values(0).includes(value)), 30_000);
  const times = line.readings.filter(({ historical }) => historical).map(({ time }) => time);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

test("the outcome of each gap is reported: filled from the history, lost without one, none if no value changed", {
  timeout: 60_000,
}, async () => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  const stateDir = own.file("state");
  const setup = {
    stateDir,
    options: { url: server.url, ...insecure },
    // Two tags of one node: both are filled.
    tags: ["Temp", "Count", "Big", "Temp"].map((name) => ({ node: `nsu=${lineNamespace};s=${name}` })),
  };
  server.set("Count", 1);
  {
    await using line = collect(await openOpcuaSource({ ...setup, runtime: hurried() }));
    await eventually(() => [0, 1, 2, 3].every((tag) => line.values(tag).length > 0));
    expect(line.source.recovery).toBeUndefined();
    expect(line.gaps).toEqual([]);
  }
  server.endSessions();
  server.set("Temp", 31, new Date(Date.now() - 20));
  server.set("Temp", 32);
  server.set("Count", 2);
  await using line = collect(await openOpcuaSource({ ...setup, runtime: hurried() }));
  const states = (tag: number) => line.gaps.filter((gap) => gap.tag === tag).map(({ state }) => state);
  await eventually(() => [0, 3].every((tag) => states(tag).includes("filled")) && states(1).includes("lost"), 30_000);

  expect(states(0)).toEqual(["open", "filled"]);
  expect(states(3)).toEqual(["open", "filled"]);
  expect(states(1)).toEqual(["open", "lost"]);
  expect(states(2)).toEqual([]);
  expect(line.gaps.find(({ state }) => state === "lost")?.reason).toBe("no history");
  // The gap is reported as filled after the readings that fill it.
  for (const tag of [0, 3]) expect(line.values(tag)).toContain(31);
});

test("without backfill every gap is reported as lost", { timeout: 60_000 }, async () => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  const setup = { stateDir: own.file("state"), options: { url: server.url, ...insecure, backfill: "off" }, tags };
  {
    await using line = collect(await openOpcuaSource({ ...setup, runtime: hurried() }));
    await eventually(() => line.values(0).length > 0);
  }
  server.endSessions();
  server.set("Temp", 31);
  await using line = collect(await openOpcuaSource({ ...setup, runtime: hurried() }));
  await eventually(() => line.gaps.some(({ state, reason }) => state === "lost" && reason === "backfill is off"));
});
