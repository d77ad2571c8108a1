// Every kind of invalid input to the specification's methods is refused with its path, and the store stays unchanged.
import { afterAll, expect, test } from "vitest";
import { integration, testService } from "../support/service.ts";

// One service is enough for all tests, because refused input changes nothing.
const service = await testService();
afterAll(() => service[Symbol.asyncDispose]());

async function faults(method: string, params: object) {
  const { body } = await service.call(method, params);
  return body?.error?.code === -32602 ? body.error.data?.params : body;
}
async function signals() {
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  return Object.values(body?.result?.signals);
}

test.each([
  [{}, ["integration", "inputs"]],
  [{ integration: 5, inputs: [] }, ["integration", "inputs"]],
  [{ integration: "SHORT", inputs: {} }, ["integration"]],
  [{ integration, inputs: {}, createOnly: "yes" }, ["createOnly"]],
  [
    { integration, inputs: { "a b": {}, "": {}, ["x".repeat(129)]: {} } },
    ["inputs.a b", "inputs.", `inputs.${"x".repeat(129)}`],
  ],
  [{ integration, inputs: { a: null, b: 1, c: [] } }, ["inputs.a", "inputs.b", "inputs.c"]],
  [
    { integration, inputs: { boiler: { enumValues: { 10000: "x", "01": "y", 1: 2 } } } },
    ["inputs.boiler.enumValues.1", "inputs.boiler.enumValues.10000", "inputs.boiler.enumValues.01"],
  ],
  [
    {
      integration,
      inputs: { a: { name: 5, type: "text", sourceType: "guess", labels: { x: "y", "a b": [] }, unit: "V" } },
    },
    [
      "inputs.a.name",
      "inputs.a.type",
      "inputs.a.labels.x",
      "inputs.a.labels.a b",
      "inputs.a.sourceType",
      "inputs.a.unit",
    ],
  ],
  [
    { integration, inputs: { a: { sampleInterval: "P1M", gapDetection: "-PT1S", annotations: { "a.b": "c", d: 1 } } } },
    ["inputs.a.annotations.a.b", "inputs.a.annotations.d", "inputs.a.sampleInterval", "inputs.a.gapDetection"],
  ],
  [{ integration, inputs: { a: { sampleInterval: "P9999999999999W" } } }, ["inputs.a.sampleInterval"]],
])("saveSignals with %j is refused at %j, and nothing is stored", async (params, paths) => {
  const found = await faults("integration.saveSignals", params);
  expect(Object.keys(found ?? {}).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
    paths.toSorted((a, b) => (a < b ? -1 : 1)),
  );
  expect(await signals()).toEqual([]);
});

test.each([
  [{ data: { times: [], series: {} } }, ["integration"]],
  [{ integration }, ["data"]],
  [{ integration, data: [] }, ["data"]],
  [{ integration, data: {} }, ["data.times", "data.series"]],
  [{ integration, data: { times: {}, series: [] } }, ["data.times", "data.series"]],
  [
    { integration, data: { times: [0, "2026-13-01T00:00:00Z", null], series: {} } },
    ["data.times.0", "data.times.1", "data.times.2"],
  ],
  [
    { integration, data: { times: ["1684-01-01T00:00:00Z", "2256-01-01T00:00:00Z"], series: {} } },
    ["data.times.0", "data.times.1"],
  ],
  [{ integration, data: { times: [], series: { a: 1, b: [1] } } }, ["data.series.a", "data.series.b"]],
  [
    { integration, data: { times: ["2026-01-01T00:00:00Z"], series: { a: ["1"], b: [true], c: [{}] } } },
    ["data.series.a.0", "data.series.b.0", "data.series.c.0"],
  ],
])("insert with %j is refused at %j", async (params, paths) => {
  expect(Object.keys((await faults("integration.insert", params)) ?? {})).toEqual(paths);
  expect(await signals()).toEqual([]);
});

test.each([
  ["admin.selectSignals", { integration, signals: 5, items: [] }, ["items", "signals"]],
  [
    "admin.selectSignals",
    { integration, signals: { include: 1, limit: "1", skip: 0.5, filter: [] } },
    ["signals.filter", "signals.include", "signals.limit", "signals.skip"],
  ],
  ["platform.selectItems", { items: [], data: "x" }, ["data", "items"]],
  [
    "platform.selectItems",
    { data: { include: true, notBefore: "yesterday", before: 5, rollup: "1h" } },
    ["data.before", "data.notBefore", "data.rollup"],
  ],
  ["platform.selectItems", { data: { include: true, rollup: "P1M" } }, ["data.rollup"]],
  ["platform.selectItems", { data: { include: true, rollup: "PT0S" } }, ["data.rollup"]],
])("%s with %j is refused at %j", async (method, params, paths) => {
  const found = await faults(method, params);
  expect(Object.keys(found ?? {}).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(paths);
});
