// Times of readings without a time of their own.
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import { reading, tagId, tryMapping } from "../../support/mapping.ts";

const arrived = (value: number, micros: number, tag = 0) =>
  reading(value, { tag: tagId(tag), clock: "agent", time: epochMicros(micros) });

test("readings of one input that arrive together get times 1 µs apart, those of different inputs share a time", () => {
  const { mapping } = tryMapping([{ input: "a" }, { input: "b" }]);
  const readings = [
    arrived(1, 1_000),
    arrived(5, 1_000, 1),
    arrived(0, 1_000),
    arrived(1, 1_000),
    arrived(6, 1_000, 1),
  ];

  const points = mapping.map({ readings, descriptions: [] });

  expect(points.map(({ input, time, value }) => [input, time, value])).toEqual([
    ["a", 1_000, 1],
    ["b", 1_000, 5],
    ["a", 1_001, 0],
    ["a", 1_002, 1],
    ["b", 1_001, 6],
  ]);
});

test("arrival times stay strictly increasing when the next delivery arrives within the burst before it", () => {
  const { mapping } = tryMapping([{}]);
  mapping.map({ readings: Array.from({ length: 100 }, (_, i) => arrived(i, 1_000)), descriptions: [] });

  const [point] = mapping.map({ readings: [arrived(7, 1_050)], descriptions: [] });

  expect(point?.time).toBe(1_100);
  expect(mapping.tags()[0]?.time).toBe(1_100);
});

test("arrival times follow the clock when it is set back", () => {
  const { mapping } = tryMapping([{}]);
  mapping.map({ readings: [arrived(1, 10_000_000)], descriptions: [] });

  expect(mapping.map({ readings: [arrived(2, 2_000_000)], descriptions: [] })[0]?.time).toBe(2_000_000);
});

test("a grid rounds arrival times after they were made distinct", () => {
  const { mapping } = tryMapping([{ align: "1s" }]);
  const points = mapping.map({ readings: [arrived(1, 5_000_000), arrived(0, 5_000_000)], descriptions: [] });

  expect(points.map(({ time, value }) => [time, value])).toEqual([
    [5_000_000, 1],
    [5_000_000, 0],
  ]);
});

test("a device time is stored unchanged", () => {
  const { mapping } = tryMapping([{}]);
  const stamped = [1, 0].map((value) => reading(value, { time: epochMicros(1_000) }));

  expect(mapping.map({ readings: stamped, descriptions: [] }).map(({ time }) => time)).toEqual([1_000, 1_000]);
});

test("points of a tag with sameTime: keep are marked, those of other tags are not", () => {
  const { mapping } = tryMapping([{ input: "a", sameTime: "keep" }, { input: "b" }]);
  const points = mapping.map({ readings: [arrived(1, 1_000), arrived(5, 1_000, 1)], descriptions: [] });

  expect(points).toEqual([
    { input: "a", time: 1_000, value: 1, sameTime: "keep" },
    { input: "b", time: 1_000, value: 5 },
  ]);
});
