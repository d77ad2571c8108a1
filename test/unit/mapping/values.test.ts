// How values are converted: numbers, booleans, words, states, ranges and qualities.
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import type { Reading } from "../../../src/core/source.ts";
import { reading, tagId, tryMapping } from "../../support/mapping.ts";

test("a number is scaled and stored under its input", () => {
  const { read } = tryMapping([{ input: "hall1.m1.voltage", scale: 0.1, offset: -40 }]);
  expect(read(2_303)).toEqual([["hall1.m1.voltage", 190.3]]);
});

test("booleans are 0 and 1, or as `values` defines", () => {
  const { read } = tryMapping([{ input: "a" }, { input: "b", values: { true: 0, false: 1 } }]);
  expect(read(true)).toEqual([["a", 1]]);
  expect(read(false)).toEqual([["a", 0]]);
  expect(read(true, { tag: tagId(1) })).toEqual([["b", 0]]);
});

test("numbers and booleans in `values` are translated however they are written", () => {
  const { read } = tryMapping([
    { values: { "00": 10, "1.0": 11, "2": 12, True: 20, FALSE: 30, "9007199254740993": 40 } },
  ]);
  const stored = [0, "00", "0", 1, "1.0", " 1 ", "02", 2n, true, "True", false, "9007199254740993"].map((raw) =>
    read(raw),
  );
  expect(stored.flat().map(([, value]) => value)).toEqual([10, 10, 10, 11, 11, 11, 12, 12, 20, 20, 30, 40]);
});

test("a key of `values` as it is written takes precedence over another way to write its number", () => {
  const { read } = tryMapping([{ values: { "01": 5, "1": 6 } }]);
  expect([read("01"), read("1"), read(1)].flat()).toEqual([
    ["a", 5],
    ["a", 6],
    ["a", 6],
  ]);
});

test("words are recognised between spaces, as devices with texts of fixed length send them", () => {
  const signal = { type: "enum", enumValues: { 3: "auto" } } as const;
  const { read } = tryMapping([
    { input: "a", values: { ON: 1 } },
    { input: "b", signal },
  ]);
  expect(read("ON   ")).toEqual([["a", 1]]);
  expect(read("auto ", { tag: tagId(1) })).toEqual([["b", 3]]);
});

test("words become the numbers in `values`, others are counted and shown", () => {
  const { read, mapping, runtime } = tryMapping([{ values: { ON: 1, OFF: 0 }, scale: 10 }]);
  expect(read("ON")).toEqual([["a", 1]]);
  expect(read("OFF")).toEqual([["a", 0]]);
  expect(read("BROKEN")).toEqual([]);
  expect(mapping.tags()[0]).toMatchObject({ bad: 1, quality: "bad", reason: 'the word "BROKEN" is not in values' });
  expect(runtime.metric("mapping_dropped_readings_total", { source: "bus1", reason: "unknownWord" })).toBe(1);
});

test("a numeric text becomes a number", () => {
  const { read } = tryMapping([{ scale: 2 }]);
  expect(read(" 21.5 ")).toEqual([["a", 43]]);
  expect(read("-1e3")).toEqual([["a", -2_000]]);
  for (const text of ["", "0x10", "1,5", "Infinity", "NaN", "12abc", "true"]) expect(read(text)).toEqual([]);
});

test("the words of an enumeration become its states", () => {
  const { read, mapping } = tryMapping([{ signal: { type: "enum", enumValues: { 0: "open", 1: "closed" } } }]);
  expect(read("closed")).toEqual([["a", 1]]);
  expect(mapping.tags()[0]).toMatchObject({ value: 1, text: "closed" });
  expect(read(0)).toEqual([["a", 0]]);
  expect(read("ajar")).toEqual([]);
});

test("a state is a whole number from 0 to 9999", () => {
  const { read, mapping } = tryMapping([{ signal: { type: "enum" } }]);
  expect(read(9_999)).toEqual([["a", 9_999]]);
  for (const value of [1.5, -1, 10_000]) expect(read(value)).toEqual([]);
  expect(mapping.tags()[0]).toMatchObject({ bad: 3, reason: "is 10000; states are whole numbers from 0 to 9999" });
});

test("a non-finite value is never stored, whatever produced it", () => {
  const { read, runtime } = tryMapping([{ scale: 1e300, badQuality: "keep" }]);
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e300, 10n ** 30n])
    expect(read(value, { quality: "bad" })).toEqual([]);
  expect(runtime.metric("mapping_dropped_readings_total", { reason: "notFinite" })).toBe(5);
});

test("minus zero is stored as zero", () => {
  const { read } = tryMapping([{ scale: -1 }, {}]);
  expect(Object.is(read(0)[0]?.[1], 0)).toBe(true);
  expect(Object.is(tryMapping([{}]).read(-0)[0]?.[1], 0)).toBe(true);
});

test.each([
  ["a number", (value: bigint) => value],
  ["a text, as every field of CSV is", String],
])("an integer beyond 2^53 in %s is rounded, counted, and logged once", (_, as) => {
  const { read, mapping, runtime } = tryMapping([{}]);
  expect(read(as(2n ** 53n + 1n))).toEqual([["a", 2 ** 53]]);
  expect(read(as(2n ** 53n + 3n))).toEqual([["a", 2 ** 53 + 4]]);
  // A value that is a double needs no rounding and is not counted.
  expect(read(7)).toEqual([["a", 7]]);
  expect(runtime.metric("mapping_rounded_values_total")).toBe(2);
  expect(runtime.lines.filter(({ message }) => message.includes("2^53"))).toHaveLength(1);
  expect(mapping.tags()[0]).toMatchObject({ reason: "integers beyond 2^53 are rounded to the nearest double" });
});

test("values outside the valid range are counted and not stored", () => {
  const { read, mapping } = tryMapping([{ scale: 10, valid: { min: 0, max: 100 } }]);
  expect(read(10)).toEqual([["a", 100]]);
  expect(read(10.1)).toEqual([]);
  expect(read(-0.1)).toEqual([]);
  expect(mapping.tags()[0]).toMatchObject({ bad: 2, stored: 1, reason: "is -1, below valid.min 0" });
});

test("the bounds of the valid range are inclusive, and either may be omitted", () => {
  const { read } = tryMapping([{ valid: { min: -5, max: 100 } }]);
  expect(read(-5)).toEqual([["a", -5]]);
  expect(read(100)).toEqual([["a", 100]]);
  expect(tryMapping([{ valid: { min: 0 } }]).read(1e300)).toEqual([["a", 1e300]]);
  expect(tryMapping([{ valid: { max: 0 } }]).read(-1e300)).toEqual([["a", -1e300]]);
});

test("bad quality is dropped with the device's reason, or kept where the tag says so", () => {
  const { read, mapping } = tryMapping([{ input: "a" }, { input: "b", badQuality: "keep" }]);
  const bad = { quality: "bad", reason: "sensor failure" } as const;
  expect(read(1, bad)).toEqual([]);
  expect(mapping.tags()[0]).toMatchObject({ value: 1, quality: "bad", reason: "sensor failure", bad: 1, stored: 0 });
  expect(read(1, { ...bad, tag: tagId(1) })).toEqual([["b", 1]]);
  expect(mapping.tags()[1]).toMatchObject({ value: 1, quality: "bad", reason: "sensor failure", bad: 0, stored: 1 });
});

test("a doubt about a good value is shown with it", () => {
  const { read, mapping } = tryMapping([{}]);
  expect(read(1, { quality: "good", reason: "the time of arrival is taken" })).toEqual([["a", 1]]);
  expect(mapping.tags()[0]).toMatchObject({ quality: "good", reason: "the time of arrival is taken", bad: 0 });
});

test("an uncertain value is stored", () => {
  expect(tryMapping([{}]).read(1, { quality: "uncertain", reason: "last usable value" })).toEqual([["a", 1]]);
});

test("a reading without a value is shown with its reason", () => {
  const { read, mapping } = tryMapping([{ badQuality: "keep" }]);
  expect(read(undefined, { quality: "bad", reason: "illegal data address" })).toEqual([]);
  expect(mapping.tags()[0]).toMatchObject({ value: undefined, quality: "bad", reason: "illegal data address", bad: 1 });
});

test("align rounds times to a grid and shows the device's own", () => {
  const { mapping } = tryMapping([{ align: "1s" }]);
  const at = (seconds: number) =>
    mapping.map({ readings: [reading(1, { time: epochMicros(seconds * 1e6) })], descriptions: [] })[0]?.time;
  expect(at(1.4)).toBe(1_000_000);
  expect(at(1.6)).toBe(2_000_000);
  expect(mapping.tags()[0]?.time).toBe(1_600_000);
});

test("the time in which an input has no usable value is reported once, from its last good reading or the device's own time", () => {
  const reported: unknown[] = [];
  const watch = {
    failed: (...args: unknown[]) => reported.push(["failed", ...args]),
    recovered: (...args: unknown[]) => reported.push(["recovered", ...args]),
  };
  const { read } = tryMapping([{ valid: { max: 10 } }, { input: "{x}" }], { watch });
  const at = (time: number, given: Partial<Reading> = {}) => ({ time: epochMicros(time), ...given });
  read(1, at(100));
  read(11, at(200, { clock: "agent" }));
  read(12, at(300, { clock: "agent" }));
  read(undefined, at(350, { historical: true, quality: "bad" }));
  read(2, at(400));
  read(undefined, at(500, { reason: "no link" }));
  read(3, at(600));
  read(4, at(700));
  read(1, at(800, { tag: tagId(1) }));

  expect(reported).toEqual([
    ["failed", "a", 100, "bad", "is 11, above valid.max 10"],
    ["recovered", "a", 400],
    ["failed", "a", 500, "bad", "no link"],
    ["recovered", "a", 600],
    ["failed", "", undefined, "refused", expect.any(String)],
  ]);
});
