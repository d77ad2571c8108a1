// Device clocks that stand still, and values that often share a time.
import { expect, test } from "vitest";
import { timeFaultWarnings } from "../../../src/agent/status/warnings.ts";
import { epochMicros } from "../../../src/core/point.ts";
import type { Reading } from "../../../src/core/source.ts";
import { reading, tryMapping } from "../../support/mapping.ts";

const at = (micros: number, more: Partial<Reading> = {}) => ({ time: epochMicros(micros), ...more });
const stillTime = at(1_000);

test("a device clock stopped for 60 s is listed with the tag and logged once", async () => {
  const { mapping, read, clock, runtime } = tryMapping([{ input: "line.level" }]);
  for (let i = 0; i < 20; i++, await clock.advance(3_000)) read(i, stillTime);
  expect(mapping.timeFaults()).toMatchObject({ standing: 0 });

  for (let i = 0; i < 20; i++, await clock.advance(10_000)) read(i * 100, stillTime);

  expect(mapping.timeFaults()).toEqual({
    standing: 1,
    repeats: 0,
    first: [expect.objectContaining({ input: "line.level", kind: "standing", readings: 40, forMs: 247_000 })],
  });
  expect(mapping.tags()[0]?.reason).toBe("the device clock stands still: 40 readings in 247 s have one time");
  const lines = runtime.lines.filter(({ message }) => message.startsWith("a device clock stands still"));
  expect(lines).toHaveLength(1);
  expect(lines[0]?.fields).toMatchObject({ input: "line.level", seconds: 67 });
});

test("an input is no longer listed when its device clock runs again", async () => {
  const { mapping, read, clock } = tryMapping([{ sameTime: "keep" }]);
  for (let i = 0; i < 20; i++, await clock.advance(10_000)) read(i, stillTime);
  expect(mapping.timeFaults().standing).toBe(1);

  read(7, at(2_000));

  expect(mapping.timeFaults()).toEqual({ standing: 0, repeats: 0, first: [] });
});

test.each<[string, (i: number) => [number, Partial<Reading>]]>([
  ["the same value, as of a server that gives the time of the last change", () => [5, stillTime]],
  ["historical readings", (i) => [i, { ...stillTime, historical: true }]],
  ["times of arrival", (i) => [i, { ...stillTime, clock: "agent" }]],
  ["a clock that runs", (i) => [i, at(i)]],
  ["1 of 25 readings with the time of the one before", (i) => [i, at(i - (i % 25 === 24 ? 1 : 0))]],
])("not listed: %s", async (_, nth) => {
  const { mapping, read, clock } = tryMapping([{}]);
  for (let i = 0; i < 1_500; i++, await clock.advance(10_000)) read(...nth(i));

  expect(mapping.timeFaults()).toEqual({ standing: 0, repeats: 0, first: [] });
  expect(mapping.tags()[0]?.reason).toBeUndefined();
});

test("values that often repeat the previous time are listed, unless the tag keeps all values of one time", () => {
  const coarse = Array.from({ length: 2_000 }, (_, i) => reading(i, at(i - (i % 10 === 9 ? 1 : 0))));
  const { mapping, runtime } = tryMapping([{ input: "fast" }]);
  mapping.map({ readings: coarse, descriptions: [] });
  const keeping = tryMapping([{ sameTime: "keep" }]).mapping;
  keeping.map({ readings: coarse, descriptions: [] });

  const { first, ...counts } = mapping.timeFaults();
  expect(counts).toEqual({ standing: 0, repeats: 1 });
  expect(first[0]).toMatchObject({ input: "fast", kind: "repeats" });
  expect((first[0]?.repeats ?? 0) / (first[0]?.readings ?? 1)).toBeCloseTo(0.1, 2);
  expect(mapping.tags()[0]?.reason).toMatch(/^\d+ of \d+ readings have the time of the one before/);
  expect(runtime.lines.filter(({ message }) => message.startsWith("values often have"))).toHaveLength(1);
  expect(keeping.timeFaults()).toEqual({ standing: 0, repeats: 0, first: [] });
});

test("totals stamped with the start of their hour share times, but do not count as a stopped clock after the first hour", async () => {
  const { mapping, read, clock } = tryMapping([{}]);
  for (let i = 0; i < 180; i++, await clock.advance(60_000)) {
    read(i, at(Math.floor(i / 60) * 3_600e6));
    if (i >= 60) expect(mapping.timeFaults()).toMatchObject({ standing: 0, repeats: 1 });
  }
});

test("an input is forgotten an hour after its last repeated time", async () => {
  const { mapping, read, clock } = tryMapping([{}]);
  for (let i = 0; i < 20; i++) read(i, stillTime);
  expect(mapping.timeFaults().repeats).toBe(1);

  await clock.advance(3_600_001);

  expect(mapping.timeFaults()).toEqual({ standing: 0, repeats: 0, first: [] });
  expect(mapping.tags()[0]?.reason).toBeUndefined();
});

test("the first of many inputs are named in one warning, and all are counted", async () => {
  const rules = Array.from({ length: 150 }, (_, i) => ({ input: `hall.t${i}` }));
  const { mapping, clock } = tryMapping(rules);
  for (let i = 0; i < 20; i++, await clock.advance(5_000))
    mapping.map({
      readings: rules.map((_, tag) => reading(i, { ...stillTime, tag: tag as Reading["tag"] })),
      descriptions: [],
    });

  const { standing, repeats, first } = mapping.timeFaults();
  const warnings = timeFaultWarnings({ standing, repeats, first: first.map((f) => ({ ...f, source: "bus1" })) });

  expect(first).toHaveLength(100);
  expect(warnings).toEqual([
    {
      level: "warn",
      message: expect.stringMatching(
        /^the device clock stands still for 150 Input IDs: bus1 hall\.t0 \(20 readings with one time in 90 s\), .*hall\.t4 \([^)]*\) and 145 more$/,
      ),
      remedy: expect.stringContaining("sameTime: keep"),
      title: "the device clock stands still for 150 Input IDs",
    },
  ]);
});
