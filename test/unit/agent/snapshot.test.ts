// What the status contains for the operator.
import { expect, test } from "vitest";
import { snapshotOf as partOf, sampleOfAgent, snapshot } from "../../../src/agent/status/snapshot.ts";
import { sourceMonitor } from "../../../src/agent/status/source-monitor.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { BufferStats } from "../../../src/core/buffer.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { environmentOf, head, withPassword } from "../../support/config.ts";
import { tagId, tryMapping } from "../../support/mapping.ts";
import { testRuntime } from "../../support/runtime.ts";

test("a loss is reported with its cause, its times and a remedy", async () => {
  const { warnings } = await snapshotOf({
    losses: [
      { reason: "diskFull", points: 12, from: epochMicros(1_000_000), to: epochMicros(2_000_000), intervals: [] },
      { reason: "maxAge", points: 0, from: undefined, to: undefined, intervals: [] },
    ],
  });

  expect(warnings).toEqual([
    {
      level: "error",
      title: "12 points lost from the buffer",
      message:
        "12 points were lost from the buffer: diskFull, times from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z",
      remedy: expect.stringContaining("whenFull: block"),
    },
  ]);
});

test("a warning of a connection is in the status with the name of its source while the connection lasts", async () => {
  const { mapping } = tryMapping([{ input: "a" }]);
  const monitor = sourceMonitor({ name: "bus1", type: "modbus", tags: 1 }, testRuntime());
  const parts = { ...(await partsOf({})), sources: [{ mapping, monitor }] };
  monitor.online({
    deliveries: async function* () {},
    warnings: () => [{ message: "replies come twice", remedy: "look for the repeater" }],
    async [Symbol.asyncDispose]() {},
  });

  const expected = { level: "warn", message: "bus1: replies come twice", remedy: "look for the repeater" };
  expect(snapshot(parts).warnings).toContainEqual(expected);
  monitor.lost(new Error("gone"), 1_000);
  expect(snapshot(parts).warnings).not.toContainEqual(expected);
});

test("a plot has no value while the device gives none, nor while its source is not connected", async () => {
  const { mapping, read } = tryMapping([{ input: "a" }]);
  const monitor = sourceMonitor({ name: "bus1", type: "modbus", tags: 1 }, testRuntime());
  const { values } = sampleOfAgent({ ...(await partsOf({})), sources: [{ mapping, monitor }] });
  const sampled = () => {
    const all: (number | undefined)[] = [];
    values(10, (_input, value) => all.push(value));
    return all;
  };
  monitor.online({ deliveries: async function* () {}, async [Symbol.asyncDispose]() {} });
  read(5);
  expect(sampled()).toEqual([5]);
  read(undefined, { quality: "bad", reason: "unit 1 did not answer" });
  expect(sampled()).toEqual([undefined]);
  read(7, { quality: "bad", reason: "the sensor is broken" });
  expect(sampled()).toEqual([undefined]);
  read(6);
  expect(sampled()).toEqual([6]);
  monitor.lost(new Error("gone"), 1_000);
  expect(sampled()).toEqual([undefined]);
});

test("several losses of one cause are not one long interval", async () => {
  const seconds = (from: number, to: number) => ({ from: epochMicros(from * 1e6), to: epochMicros(to * 1e6) });
  const { warnings } = await snapshotOf({
    losses: [
      {
        reason: "maxSize",
        points: 12,
        ...seconds(1, 9),
        intervals: [
          { number: 0, points: 5, ...seconds(1, 2) },
          { number: 4, points: 7, ...seconds(8, 9) },
        ],
      },
    ],
  });

  expect(warnings[0]?.message).toBe(
    "12 points were lost from the buffer: maxSize, in 2 intervals, the last from 1970-01-01T00:00:08.000Z to 1970-01-01T00:00:09.000Z",
  );
});

test("a page gets the rows that it requests across sources, or the last ones when the request is past the end", async () => {
  const sources = ["a", "b", "c"].map((name, n) => {
    const { mapping, read } = tryMapping(Array.from({ length: n * 2 }, (_, i) => ({ input: `${name}.${i}` })));
    if (n > 0) read(7);
    return { mapping, monitor: sourceMonitor({ name, type: "mqtt", tags: n * 2 }, testRuntime()) };
  });
  const parts = { ...(await partsOf({})), sources };
  const { tags: all, ...status } = snapshot(parts);
  expect(all.map(({ source, input }) => `${source} ${input}`)).toEqual([
    "b b.0",
    "b b.1",
    "c c.0",
    "c c.1",
    "c c.2",
    "c c.3",
  ]);
  for (let first = 0; first < 8; first++)
    for (let count = 0; count < 8; count++) {
      const begin = Math.min(first, Math.max(0, all.length - count));
      expect(partOf(parts, first, count)).toEqual({
        status,
        tags: { total: all.length, first: begin, rows: all.slice(begin, begin + count) },
      });
    }
});

test("tags whose device clock stands still or whose times repeat are named in headline, warnings and rows", async () => {
  const { mapping, read, clock } = tryMapping([{ input: "hall.still" }, { input: "hall.coarse" }]);
  for (let i = 0; i < 20; i++, await clock.advance(5_000)) {
    read(i, { time: epochMicros(7), tag: tagId(0) });
    read(i, { time: epochMicros(i - (i % 2)), tag: tagId(1) });
  }
  const monitor = sourceMonitor({ name: "bus1", type: "mqtt", tags: 2 }, testRuntime());
  const { overall, warnings, timeFaults, tags } = snapshot({ ...(await partsOf({})), sources: [{ mapping, monitor }] });

  expect(overall.text).toContain("device clock stands still for 1 Input ID");
  expect(warnings).toEqual([
    {
      level: "warn",
      title: "the device clock stands still for 1 Input ID",
      message: "the device clock stands still for 1 Input ID: bus1 hall.still (20 readings with one time in 90 s)",
      remedy: expect.stringContaining("set the device's clock"),
    },
    {
      level: "warn",
      message:
        "values often have the time of the one before and replace it, for 1 Input ID: bus1 hall.coarse (10 of 20 readings)",
      remedy: expect.stringContaining("sameTime: keep"),
    },
  ]);
  expect(timeFaults).toMatchObject({
    standing: 1,
    repeats: 1,
    first: [
      { source: "bus1", input: "hall.still", kind: "standing" },
      { source: "bus1", input: "hall.coarse", kind: "repeats" },
    ],
  });
  expect(tags.map(({ reason }) => reason)).toEqual([
    "the device clock stands still: 20 readings in 90 s have one time",
    "10 of 20 readings have the time of the one before and replace its value",
  ]);
});

test("a growing buffer without delivery is full when its oldest point is too old, at the latest", async () => {
  const parts = await partsOf({ unsettledPoints: 5, oldest: epochMicros(0) });
  const days = (count: number) => count * 86_400_000;
  const growing = { arriving: 1, shrinksBy: -1, goesOn: false, bytesGrowBy: 1 };
  // buffer.maxAge is 30 d, and the bytes alone would last for years.
  const { backlog } = snapshot({ ...parts, time: epochMicros(days(2) * 1_000), progress: growing }).upload;
  expect(backlog).toMatchObject({ fullMs: days(28), text: "waits; buffer full in about 28 d" });
});

async function snapshotOf(buffer: Partial<BufferStats>) {
  return snapshot(await partsOf(buffer));
}

async function partsOf(buffer: Partial<BufferStats>) {
  const config = await loadConfig(
    "agent.yaml",
    environmentOf(withPassword, { "/site/agent.yaml": `${head}sources: {}\n` }),
  );
  const time = epochMicros(0);
  return {
    time,
    agent: {
      name: "gw1",
      version: "0",
      config: { checksum: "0", loadedAt: time, needRestart: [] },
      startedAt: time,
      uptimeMs: 0,
    },
    config: { ...config, warnings: [] },
    sources: [],
    buffer: { ...emptyBuffer, ...buffer },
    delivery: { status: () => undefined, outage: undefined },
    gaps: { open: 0, day: 0, dayLost: 0, revision: 0 },
  };
}

const emptyBuffer: BufferStats = {
  bytes: 0,
  segments: 0,
  appendedPoints: 0,
  settledPoints: 0,
  refusedPoints: 0,
  unsettledPoints: 0,
  oldest: undefined,
  duplicatePoints: 0,
  collidedPoints: 0,
  losses: [],
  degraded: undefined,
};
