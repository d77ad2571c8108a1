import { afterAll, expect, test } from "vitest";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { integration, testService } from "../support/service.ts";

const clock = new ManualClock("2026-03-01T12:00:00Z");
const service = await testService({ namespace: "acme" }, testRuntime({ clock }));
afterAll(() => service[Symbol.asyncDispose]());
const call = (method: string, params: unknown) => service.call(method, params, { version: "1.1" });
const result = async (method: string, params: unknown) => {
  const { body } = await call(method, params);
  if (!body?.result) throw new Error(JSON.stringify(body));
  return body.result;
};
const faults = async (method: string, params: unknown) => (await call(method, params)).body?.error?.data?.params;

const saved = await result("integration.saveSignals", {
  integration,
  signalsByInput: {
    level: {
      name: "Level",
      valueType: "",
      sourceType: "",
      engUnit: "",
      sampleInterval: "P0DT0H0M30.000000S",
      annotations: null,
    },
    pump: { name: "Pump", valueType: "enum", enumValues: { 0: "off", 1: "on" } },
  },
});
const [level, pump] = [saved.signalsByInput.level.id, saved.signalsByInput.pump.id];
const minute = (n: number) => `2026-03-01T10:${String(n).padStart(2, "0")}:00Z`;
await result("integration.insert", {
  integration,
  data: {
    times: [0, 1, 2, 3, 10, 11].map(minute),
    series: { level: [1, 2, 3, 4, 10, null], pump: [0, 1, null, 0, null, 1] },
  },
});
const published = await result("admin.publishSignals", {
  integration,
  itemsBySignal: {
    [level]: { name: "Level", valueType: "numeric", sourceType: "measurement", visible: true, gapDetection: "PT5M" },
    [pump]: { name: "Pump", valueType: "enum", sourceType: "measurement", gapDetection: "PT5M" },
  },
});
const [levelItem, pumpItem] = [published.itemsBySignal[level].id, published.itemsBySignal[pump].id];
const window = { times: { $gte: minute(0), $lt: minute(20) } };

test("saves and publications report whether they updated, and repeating a save does not", async () => {
  expect(saved.signalsByInput.level).toEqual({ id: level, created: true, updated: false });
  expect(published.itemsBySignal[level]).toEqual({ id: levelItem, created: true, updated: false });
  const again = await result("integration.saveSignals", {
    integration,
    inputs: { pump: { name: "Pump", valueType: "enum", enumValues: { 1: "on", 0: "off" } } },
  });
  expect(again.signalsByInput.pump).toEqual({ id: pump, created: false, updated: false });
});

test("signals are selected as resources with relationships, their items included by type", async () => {
  const selected = await result("admin.selectSignals", {
    integration,
    query: { filter: { input: { $in: ["level"] } }, sort: ["id"], limit: 10, skip: 0, total: true },
    include: ["item"],
    format: { dataAsArray: true, groupIncludedByType: true },
  });
  expect(selected).toMatchObject({
    meta: { total: 1, format: { dataAsArray: true, groupIncludedByType: true } },
    data: [
      {
        id: level,
        type: "signals",
        attributes: { name: "Level", valueType: "numeric", input: "level", sampleInterval: "PT30S" },
        relationships: {
          integration: { data: { type: "integrations", id: integration } },
          item: { data: { type: "items", id: levelItem } },
        },
      },
    ],
    included: { items: [{ id: levelItem, type: "items", attributes: { visible: true } }] },
  });
  const flat = await result("admin.selectSignals", { integration, include: ["item"], format: { dataAsArray: false } });
  expect(Object.keys(flat.data)).toEqual([level, pump]);
  expect(flat.included.map(({ id }: { id: string }) => id)).toEqual([levelItem, pumpItem]);
});

test("items are selected with sort, skip and limit, and without an empty included", async () => {
  const names = async (query: object) =>
    (await result("acme.selectItems", { query })).data.map(
      ({ attributes }: { attributes: { name: string } }) => attributes.name,
    );
  expect(await names({})).toEqual(["Level", "Pump"]);
  expect(await names({ sort: ["-name"] })).toEqual(["Pump", "Level"]);
  expect(await names({ sort: ["-createdAt", "-id"], skip: 1, limit: 1 })).toEqual(["Level"]);
  expect(await names({ limit: -1, skip: -5 })).toEqual(["Level", "Pump"]);
  const none = await result("acme.selectItems", { query: { limit: 0 }, include: null });
  expect(none).toEqual({ meta: { total: 2, format: { dataAsArray: true, groupIncludedByType: false } }, data: [] });
});

test("a request with the specification's params is answered in the specification's dialect", async () => {
  const signals = await result("admin.selectSignals", { integration, signals: { include: true, limit: 1 } });
  expect(signals.signals[level]).toMatchObject({
    id: level,
    type: "numeric",
    meta: { contentHash: expect.any(String) },
  });
  const data = { include: true, notBefore: minute(0), before: minute(2) };
  expect(await result("acme.selectItems", { items: { filter: { id: levelItem } }, data })).toEqual({
    data: { times: [minute(0), minute(1)], series: { [levelItem]: [1, 2] } },
  });
});

test("data frames have the points of the items of a query", async () => {
  const query = { filter: { id: { $in: [levelItem, pumpItem] } } };
  expect(await result("acme.dataFrame", { query, data: { filter: window } })).toEqual({
    meta: { total: 2, format: { dataAsArray: false, groupIncludedByType: false } },
    data: {
      times: [0, 1, 2, 3, 10, 11].map(minute),
      series: { [levelItem]: [1, 2, 3, 4, 10, null], [pumpItem]: [0, 1, null, 0, null, 1] },
    },
  });
  const last = await result("acme.dataFrame", {
    query,
    data: { filter: { ...window, series: { $in: [levelItem] } }, last: 2 },
  });
  expect(last.data).toEqual({ times: [3, 10].map(minute), series: { [levelItem]: [4, 10] } });
});

test("a rollup gives aggregates of numbers and durations of states in seconds", async () => {
  const { data } = await result("acme.dataFrame", { query: {}, data: { filter: window, rollup: "PT10M" } });
  expect(data).toEqual({
    times: [minute(0), minute(10)],
    series: {
      [`${levelItem}_count`]: [4, 1],
      [`${levelItem}_min`]: [1, 10],
      [`${levelItem}_max`]: [4, 10],
      [`${levelItem}_sum`]: [10, 10],
      [`${levelItem}_avg`]: [2.5, 10],
      // Off for a minute, on for two, off until the gap of 5 minutes; on again at 11.
      [`${pumpItem}_0`]: [360, null],
      [`${pumpItem}_1`]: [120, 300],
    },
  });
});

test("without a window the default is 7 days before and after now, and year 1 means no time", async () => {
  const zero = "0001-01-01T00:00:00Z";
  for (const times of [
    {},
    { $gte: zero, $lt: zero },
    { $gte: "2026-02-20T00:00:00Z" },
    { $lt: "2026-03-10T00:00:00Z" },
  ]) {
    const { data } = await result("acme.dataFrame", { data: { filter: { times } } });
    expect(data.times.length).toBe(6);
  }
  const { data } = await result("acme.dataFrame", { data: { filter: { times: { $gte: minute(5), $lt: minute(1) } } } });
  expect(data).toEqual({ times: [], series: { [levelItem]: [], [pumpItem]: [] } });
});

test.each([
  [{ rollup: null }, 40],
  [{ rollup: "PT59S" }, 40],
  [{ rollup: "PT1M" }, 400],
  [{ rollup: "PT24H" }, 1_900],
  [{ rollup: "P30D" }, 3_660],
  [{ rollup: "P1M" }, 3_660],
])("with %j a window may span %i days and not a microsecond more", async (data, days) => {
  const $gte = "2016-01-01T00:00:00Z";
  const end = new Date(Date.parse($gte) + days * 86_400_000).toISOString().slice(0, 19);
  const query = (times: object) => ({ data: { ...data, filter: { times } } });
  expect(await faults("acme.dataFrame", query({ $gte, $lt: `${end}Z` }))).toBeUndefined();
  expect(await faults("acme.dataFrame", query({ $gte, $lt: `${end}.000001Z` }))).toEqual({
    "data.filter.times": [expect.stringContaining(`at most ${days} days`)],
  });
});

test("evaluate gives every item and calculation its column, computed bucket by bucket", async () => {
  const { meta, data, included } = await result("acme.evaluate", {
    items: [
      { id: levelItem, aggregation: "avg", alias: "level", state: null, lead: null, lag: null },
      { id: levelItem, aggregation: "last", alias: "before", lag: 1 },
      { id: levelItem, aggregation: "first", alias: "after", lead: 1 },
      { id: pumpItem, aggregation: "state-histogram-seconds", state: 1, alias: "on" },
      { id: pumpItem, timeAggregation: "state-percent", state: 1, alias: "onPercent" },
    ],
    calculations: [
      { formula: "level * 2", alias: "double" },
      { formula: "double + gapfill(before)", alias: "sum" },
      { formula: "on / bucket_seconds", alias: "share" },
    ],
    data: { filter: window, rollup: "PT10M", timeZone: null, firstDayOfWeek: null, origin: null, last: -1 },
    include: ["item"],
    format: { dataAsArray: false, groupIncludedByType: true },
  });
  expect(meta.total).toBe(-1);
  expect(data).toEqual({
    times: [minute(0), minute(10)],
    series: {
      level: [2.5, 10],
      before: [null, 4],
      after: [10, null],
      on: [120, 300],
      onPercent: [20, 50],
      double: [5, 20],
      sum: [null, 24],
      share: [0.2, 0.5],
    },
  });
  expect(included.items.map(({ id }: { id: string }) => id)).toEqual([levelItem, pumpItem]);
});

test("evaluate combines the items of a group, and formulas may use it", async () => {
  const group = { query: {}, timeAggregation: "max", alias: "g" };
  const { data } = await result("acme.evaluate", {
    items: null,
    groups: [
      { ...group, groupAggregation: "sum" },
      { ...group, groupAggregation: "count", alias: "n", query: { filter: { name: "Level" } } },
    ],
    calculations: [{ formula: "g / n", alias: "c" }],
    data: { filter: window, rollup: "PT10M" },
  });
  expect(data).toEqual({ times: [minute(0), minute(10)], series: { g: [5, 11], n: [1, 1], c: [5, 11] } });
  expect(
    await faults("acme.evaluate", { groups: [{ ...group, query: { limit: 1_001 } }], data: { rollup: "PT1H" } }),
  ).toEqual({
    "groups.0.query.limit": ["must be at most 1000"],
    "groups.0.groupAggregation": ["must be one of count, min, max, sum, avg"],
  });
});

test("evaluate over the whole window gives one row with only the requested series", async () => {
  const { data } = await result("acme.evaluate", {
    items: [{ id: levelItem, aggregation: "sum", alias: "s" }],
    calculations: [{ formula: "s / 2", alias: "half" }],
    data: { filter: { ...window, series: { $in: ["half"] } }, rollup: "window" },
  });
  expect(data).toEqual({ times: [minute(0)], series: { half: [10] } });
});

test("every fault of an evaluate request is named", async () => {
  const item = { id: levelItem, aggregation: "avg" };
  expect(
    await faults("acme.evaluate", {
      items: [
        { ...item, alias: "a", lag: 1_001, state: 10_000 },
        { ...item, alias: "a" },
        { ...item, alias: "1x" },
        { ...item, id: "c8ktonqsahsmemfs7lvg", aggregation: "median" },
        { id: pumpItem, aggregation: "state-rate", alias: "PI" },
        5,
      ],
      calculations: [
        { formula: "b + 1", alias: "c" },
        { formula: "gapfill(c)", alias: "b" },
        { formula: "1 +", alias: "d" },
        {},
      ],
      data: { filter: { times: { $lt: "x" }, more: 1 }, timeZone: "Nowhere", firstDayOfWeek: 8, origin: 5 },
      include: ["signals"],
      format: { dataAsArray: 1 },
    }),
  ).toEqual({
    "items.0.lag": ["must be from -1000 to 1000"],
    "items.0.state": ["must be from 0 to 9999"],
    "items.1.alias": ["is used twice"],
    "items.2.alias": [expect.stringContaining("must be a letter")],
    "items.3.id": ["no such item"],
    "items.3.aggregation": [expect.stringContaining("must be one of count")],
    "items.3.alias": ["required"],
    "items.4.state": ["required for state-rate"],
    "items.4.alias": ["is the name of a constant"],
    "items.5": ["must be an object"],
    "calculations.0.formula": ["names b, which is no alias before it"],
    "calculations.1.formula": ["gapfill takes an item, c is none"],
    "calculations.2.formula": ["ends too early"],
    "calculations.3.formula": ["required"],
    "calculations.3.alias": ["required"],
    "data.filter.times.$lt": ["must be an RFC 3339 timestamp or null"],
    "data.filter.more": ["can be times or series"],
    "data.timeZone": [expect.stringContaining("tz database")],
    "data.firstDayOfWeek": ["must be from 1, Monday, to 7, Sunday"],
    "data.origin": ["must be an RFC 3339 timestamp or null"],
    "data.rollup": ["required"],
    "include.0": ['can be "item"'],
    "format.dataAsArray": ["must be true or false"],
  });
});

test.each([
  ["P1M1D", "can not combine month or year components with day or time components"],
  ["PT0S", "must be longer than zero"],
  ["-PT1H", "must be longer than zero"],
  ["1h", 'must be RFC 3339 duration in range year to fraction, "window" or null'],
])("the rollup %s is refused", async (rollup, message) => {
  expect(await faults("acme.dataFrame", { data: { rollup } })).toEqual({ "data.rollup": [message] });
});

test("states in too many buckets are refused, however few the points", async () => {
  const query = { filter: { id: pumpItem } };
  const data = { filter: window, rollup: "PT0.0001S" };
  expect(await faults("acme.dataFrame", { query, data })).toEqual({
    "data.rollup": ["too many buckets: narrow the window or use longer ones"],
  });
  const hourly = await result("acme.dataFrame", { query, data: { ...data, rollup: "PT1H" } });
  expect(hourly.data.series[`${pumpItem}_1`]).toEqual([420]);
});

test("selectItems accepts calendar durations from 1.1 on", async () => {
  const params = {
    items: { filter: { id: levelItem } },
    data: { include: true, notBefore: "2026-02-01T00:00:00Z", before: "2026-03-05T00:00:00Z", rollup: "P1M" },
  };
  const { data } = await result("acme.selectItems", params);
  expect(data.times).toEqual(["2026-03-01T00:00:00Z"]);
  expect(data.series[`${levelItem}_count`]).toEqual([5]);
  const older = await service.call("acme.selectItems", params, { version: "1.1beta1" });
  expect(Object.keys(older.body?.error?.data?.params ?? {})).toEqual(["data.rollup"]);
});

test("params of another dialect select it only if they are set", async () => {
  const { meta, data } = await result("acme.selectItems", { query: { limit: 1 }, items: null, data: {} });
  expect([meta.total, data.length]).toEqual([2, 1]);
  const { signalsByInput } = await result("integration.saveSignals", {
    integration,
    inputs: null,
    signalsByInput: { level: { name: "Level", sampleInterval: "PT30S" } },
  });
  expect(signalsByInput.level).toEqual({ id: level, created: false, updated: false });
});
