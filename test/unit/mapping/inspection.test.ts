// What the page of a tag shows of each reading: the raw value, the point, and the rule that stored or suppressed it.
import { expect, test } from "vitest";
import { tagId, tryMapping } from "../../support/mapping.ts";

const inspected = (tried: ReturnType<typeof tryMapping>) =>
  tried.mapping.inspect(0, "a")?.latest.map(({ raw, value, stored, why }) => [raw, value, stored, why]);

test("readings are recorded from the first look on, newest first, with their raw value and the rule", () => {
  const tried = tryMapping([{ scale: 0.1, valid: { max: 30 } }]);
  tried.read(200);
  expect(tried.mapping.inspect(0, "a")).toMatchObject({
    state: { input: "a", value: 20, stored: 1 },
    rules: ["times 0.1", "at most 30", "every good reading is stored"],
    latest: [],
  });
  tried.read(210);
  tried.read(400);
  tried.read("x");
  expect(inspected(tried)).toEqual([
    ['"x"', undefined, false, 'the text "x" is no number; values makes numbers of words'],
    ["400", undefined, false, "is 40, above valid.max 30"],
    ["210", 21, true, "every good reading is stored"],
  ]);
});

test("readings that arrive in columns are recorded, too", () => {
  const { mapping, clock } = tryMapping([{ scale: 0.1 }]);
  const places = [{ tag: tagId(0), captures: {}, address: "hr:0" }];
  const poll = (value: number) =>
    mapping.mapBatches({ descriptions: [] }, [
      { places, values: Float64Array.of(value), times: clock.now(), clock: "agent" },
    ]);
  poll(200);
  mapping.inspect(0, "a");
  poll(210);
  expect(mapping.inspect(0, "a")?.latest).toMatchObject([{ raw: "210", value: 21, address: "hr:0", stored: true }]);
});

test("report by exception says which of its rules decided", async () => {
  const tried = tryMapping([{ report: { deadband: 1, heartbeat: "20s", minInterval: "1s" } }]);
  tried.mapping.inspect(0, "a");
  const at = async (ms: number, value: number) => {
    await tried.clock.advance(ms);
    tried.read(value);
  };
  await at(0, 10);
  await at(2_000, 10.5);
  await at(2_000, 12);
  await at(100, 14);
  await at(21_000, 14.2);
  expect(inspected(tried)?.map(([, , stored, why]) => [stored, why])).toEqual([
    [true, expect.stringMatching(/heartbeat|differs/)],
    [false, "minInterval has not elapsed; it waits"],
    [true, "it differs from 10 by more than 1"],
    [false, "it differs from 10 by no more than 1"],
    [true, "it is the first one after a start or a gap"],
  ]);
});

test("a reading of another address and one of the history say so, and take no value of another reading", () => {
  const tried = tryMapping([{}]);
  tried.mapping.inspect(0, "a");
  tried.read(1);
  tried.read(2, { address: "hr:9" });
  tried.read(3, { historical: true });
  expect(inspected(tried)).toEqual([
    ["3", undefined, true, "it is from the history of the device"],
    ["2", undefined, false, "it is from hr:9, and hr:0 feeds this input"],
    ["1", 1, true, "every good reading is stored"],
  ]);
});

test("a reading that releases the one that waited is stored only if it is stored itself", async () => {
  const tried = tryMapping([{ report: { deadband: 1, minInterval: "1s" } }]);
  tried.mapping.inspect(0, "a");
  tried.read(10);
  await tried.clock.advance(100);
  tried.read(20);
  await tried.clock.advance(1_000);
  expect(tried.read(20.5)).toEqual([["a", 20]]);
  expect(inspected(tried)?.[0]).toEqual(["20.5", 20.5, false, "it differs from 20 by no more than 1"]);
});

test("recording ends 30 s after the last request of a page, and the points are the same as without", async () => {
  const tried = tryMapping([{}]);
  tried.mapping.inspect(0, "a");
  expect(tried.read(1)).toEqual([["a", 1]]);
  await tried.clock.advance(31_000);
  tried.read(2);
  tried.read(3);
  expect(inspected(tried)).toEqual([]);
  for (let visit = 0; visit < 70; visit++) {
    tried.mapping.inspect(0, "a");
    await tried.clock.advance(31_000);
    tried.read(4);
  }
  tried.mapping.inspect(0, "a");
  tried.read(5);
  expect(inspected(tried)?.map(([raw]) => raw)).toEqual(["5"]);
});

test("few inputs are recorded at a time, the latest that a page asked for", () => {
  const tried = tryMapping(Array.from({ length: 65 }, (_, i) => ({ input: `a${i}` })));
  const latest = (i: number) => tried.mapping.inspect(i, `a${i}`)?.latest.length;
  const read = (i: number) => tried.read(1, { tag: tagId(i), address: `hr:${i}` });
  for (let i = 0; i < 65; i++) read(i);
  for (let i = 0; i < 65; i++) expect(latest(i)).toBe(0);
  for (let i = 0; i < 65; i++) read(i);
  expect([latest(64), latest(1), latest(0)]).toEqual([1, 1, 0]);
});

test("a tag without a reading has its rules, and an unknown one is none", () => {
  const { mapping } = tryMapping([{ input: "hall.{room}" }]);
  expect(mapping.inspect(0, "hall.{room}")).toMatchObject({ state: { readings: 0 }, latest: [] });
  expect(mapping.inspect(0, "b")).toBeUndefined();
  expect(mapping.inspect(7, "a")).toBeUndefined();
});
