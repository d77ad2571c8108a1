// What platform.evaluate computes: groups, formulas with conditions, and zeros where there is nothing to count.
import { afterAll, expect, test } from "vitest";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { testService } from "../support/service.ts";
import { resultOf, storeItems } from "../support/service-items.ts";

const clock = new ManualClock("2026-03-01T12:00:00Z");
const service = await testService({}, testRuntime({ clock }));
afterAll(() => service[Symbol.asyncDispose]());
const at = (hour: number, minute = 0) =>
  `2026-03-01T${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}:00Z`;
const ones = Object.fromEntries(Array.from({ length: 70 }, (_, i) => [`one.${i}`, [[at(1), 1]] as const]));
const item = await storeItems(service, {
  ...ones,
  level: [
    [at(1), 1],
    [at(1, 30), 3],
    [at(4), -2.5],
  ],
  status: [
    [at(1), 0],
    [at(2), 1],
    [at(2, 30), 0],
    [at(5), 0],
  ],
});
const evaluate = (params: object) => resultOf(service, "platform.evaluate", params);
const day = { times: { $gte: at(0), $lt: at(8) } };
const hourly = { filter: day, rollup: "PT1H" };
const hours = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => at(first + i));

test("a group has every matching item, not only the first fifty", async () => {
  const group = { alias: "g", query: { filter: { name: { $regex: "^one" } } }, timeAggregation: "sum" };
  for (const [groupAggregation, expected] of [
    ["sum", 70],
    ["count", 70],
    ["avg", 1],
  ] as const) {
    const { data } = await evaluate({ groups: [{ ...group, groupAggregation }], data: { ...hourly, last: 1 } });
    expect(data).toEqual({ times: [at(1)], series: { g: [expected] } });
  }
});

test("a group of more than a thousand items is refused unless it states a limit", async () => {
  await using crowded = await testService();
  await storeItems(crowded, Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`s${i}`, [[at(1), 1]]])));
  const group = { alias: "g", query: {}, timeAggregation: "sum", groupAggregation: "sum" };
  const groups = [group, { ...group, alias: "h", query: { limit: 50 } }];
  const { body } = await crowded.call("platform.evaluate", { groups, data: hourly }, { version: "1.1" });
  expect(body?.error?.data?.params).toEqual({ "groups.0.query": [expect.stringContaining("matches 1001 items")] });
});

test("more than a hundred groups are refused", async () => {
  const groups = Array.from({ length: 101 }, (_, i) => ({
    alias: `g${i}`,
    query: {},
    timeAggregation: "sum",
    groupAggregation: "sum",
  }));
  const { body } = await service.call("platform.evaluate", { groups, data: hourly }, { version: "1.1" });
  expect(body?.error?.data?.params).toEqual({ groups: ["must be at most 100"] });
});

test("formulas of more operations than a thread computes in seconds are refused", async () => {
  const calculations = [{ alias: "c", formula: `1${"+1".repeat(900)}` }];
  const data = { filter: { times: { $gte: at(0), $lt: at(20) } }, rollup: "PT0.1S" };
  const { body } = await service.call("platform.evaluate", { calculations, data }, { version: "1.1" });
  expect(body?.error?.data?.params).toEqual({ "data.rollup": [expect.stringMatching("too many buckets")] });
});

test("an evaluation of nothing over more buckets than one series may have is refused", async () => {
  const of = (rollup: string) => ({ filter: { times: { $gte: at(0), $lt: "2026-04-01T00:00:00Z" } }, rollup });
  const { body } = await service.call("platform.evaluate", { data: of("PT1S") }, { version: "1.1" });
  expect(body?.error?.data?.params).toEqual({ "data.rollup": [expect.stringMatching("too many buckets")] });
  expect((await evaluate({ data: of("PT1H") })).data).toEqual({ times: [], series: {} });
});

test("a group with a limit has that many items", async () => {
  const query = { filter: { name: { $regex: "^one" } }, limit: 10 };
  const group = { alias: "g", query, timeAggregation: "sum", groupAggregation: "sum" };
  expect((await evaluate({ groups: [group], data: { ...hourly, last: 1 } })).data.series).toEqual({ g: [10] });
});

test("a condition detects a fire as in the example of the public Go client", async () => {
  const { data } = await evaluate({
    items: [{ alias: "fire_rate", id: item("status"), timeAggregation: "state-rate", state: 1 }],
    groups: null,
    calculations: [{ alias: "has_fire", formula: "fire_rate > 0" }],
    data: { filter: { ...day, series: { $in: ["has_fire"] } }, rollup: "PT1H" },
    include: null,
    format: { dataAsArray: false, groupIncludedByType: false },
  });
  // State 0 of 05:00 lasts until the current time, 12:00.
  expect(data).toEqual({ times: hours(1, 7), series: { has_fire: [0, 1, 0, 0, 0, 0, 0] } });
});

test("counts and states are 0 in buckets without points inside the data's range, and missing outside", async () => {
  const { data } = await evaluate({
    items: [
      { alias: "n", id: item("level"), aggregation: "count" },
      { alias: "on", id: item("status"), aggregation: "state-seconds", state: 1 },
      { alias: "never", id: item("status"), aggregation: "state-percent", state: 7 },
    ],
    groups: [{ alias: "g", query: { filter: { name: "level" } }, timeAggregation: "max", groupAggregation: "count" }],
    data: { ...hourly, filter: { times: { $gte: at(0), $lt: at(14) } } },
  });
  expect(data).toEqual({
    times: hours(1, 11),
    series: {
      n: [2, 0, 0, 1, ...Array(7).fill(null)],
      on: [0, 1_800, ...Array(9).fill(0)],
      never: Array(11).fill(0),
      g: [1, 0, 0, 1, ...Array(7).fill(null)],
    },
  });
});

test("conditions select values, and halves are rounded away from zero", async () => {
  const { data } = await evaluate({
    items: [{ alias: "x", id: item("level"), aggregation: "last" }],
    calculations: [
      { alias: "a", formula: "x >= 3 && !(x == 4) ? x * 10 : -1" },
      { alias: "b", formula: "if(x < 0 || x != 3, round(x), abs(x))" },
      { alias: "c", formula: "x * 0 + round(2.5) + round(-2.5) + round(0.49999999999999994)" },
    ],
    data: hourly,
  });
  expect(data.series).toMatchObject({ x: [3, -2.5], a: [30, -1], b: [3, -3], c: [0, 0] });
});
