// The requests of each API version. The tests of each method show that the local service accepts them.
import { expect, test } from "vitest";
import { epochMicros, type InputId, type SignalId } from "../../src/core/point.ts";
import { itemData } from "../../src/upload/signals/item-data.ts";
import { ItemPublisher } from "../../src/upload/signals/item-publisher.ts";
import { PublishedItems } from "../../src/upload/signals/signal-files.ts";
import { storedSignals } from "../../src/upload/signals/stored-signals.ts";
import type { ApiVersion } from "../../src/wire/method.ts";
import { eventually } from "../support/eventually.ts";
import { methodCaller } from "../support/method-caller.ts";
import { testRuntime } from "../support/runtime.ts";
import { ScriptedService, says } from "../support/scripted-service.ts";
import { integration } from "../support/service.ts";
import { uploading } from "../support/uploading.ts";

const { signal } = new AbortController();
const id = "c8ktonqsahsmemfs7lvg" as SignalId;

/** Method, version header and params of every kind of request that the agent and the commands send. */
async function sent(apiVersion: ApiVersion): Promise<readonly (readonly [string, unknown, object])[]> {
  await using service = await ScriptedService.open();
  {
    await using upload = await uploading({ url: service.url, speed: 200, service: { apiVersion } });
    upload.catalog.describe("a" as InputId, { engUnit: "V" });
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => upload.reader.empty);
  }
  const results: Record<string, object> = {
    "admin.selectSignals": { data: [], signals: {} },
    "admin.publishSignals": { itemsBySignal: {} },
    "acme.selectItems": {},
    "acme.dataFrame": { data: { times: [], series: {} } },
  };
  service.otherwise = (exchange) => says(() => ({ result: results[exchange.request.method] }))(exchange);
  await using client = await methodCaller(service.url, { apiVersion, namespace: "acme" });
  const { caller } = client;
  for await (const _ of storedSignals(caller, { items: true }, signal));
  using published = PublishedItems.open(":memory:", "t", testRuntime().log);
  const { log } = testRuntime();
  const publisher = new ItemPublisher({ caller, published, mode: "update", require: [], log });
  const stored = { id, input: "a", attributes: {}, itemId: undefined, item: undefined };
  await publisher.publish(
    [publisher.plan("a" as InputId, { type: "enum", enumValues: { "0": "off" } }, stored)],
    signal,
  );
  const query = { items: ["i"], from: epochMicros(1e15), before: epochMicros(1e15 + 1e6), rollup: "PT1H" };
  for await (const _ of itemData(caller, query, signal));
  return service.seen.map(({ request, headers }) => [request.method, headers["x-api-version"], request.params]);
}

const window = { notBefore: "2001-09-09T01:46:40Z", before: "2001-09-09T01:46:41Z" };
const signalDefaults = {
  annotations: {},
  name: "a",
  description: "",
  labels: {},
  sourceType: "measurement",
  sampleInterval: null,
  gapDetection: null,
};
const saved = { ...signalDefaults, engUnit: "V", enumValues: {} };
const item = { ...signalDefaults, engUnit: "", enumValues: { "0": "off" } };
const data = { times: ["2001-09-09T01:46:40Z"], series: { a: [1] } };

test.for(["1.0", "1.1beta1"] as const)("the specification's dialect at version %s", async (apiVersion) => {
  expect(await sent(apiVersion)).toEqual([
    [
      "integration.saveSignals",
      apiVersion,
      { integration, inputs: { a: { ...saved, type: "numeric" } }, createOnly: false },
    ],
    ["integration.insert", apiVersion, { integration, data }],
    [
      "admin.selectSignals",
      "1.1beta1",
      { integration, signals: { include: true, limit: 500, skip: 0 }, items: { include: true } },
    ],
    [
      "admin.publishSignals",
      "1.1beta1",
      { integration, itemsBySignal: { [id]: { ...item, type: "enum" } }, createOnly: false },
    ],
    [
      "acme.selectItems",
      "1.1beta1",
      {
        items: { include: false, filter: { id: { $in: ["i"] } }, limit: 1 },
        data: { include: true, ...window, rollup: "PT1H" },
      },
    ],
  ]);
});

test("the current dialect at version 1.1", async () => {
  expect(await sent("1.1")).toEqual([
    [
      "integration.saveSignals",
      "1.1",
      { integration, signalsByInput: { a: { ...saved, valueType: "numeric" } }, createOnly: false },
    ],
    ["integration.insert", "1.1", { integration, data }],
    [
      "admin.selectSignals",
      "1.1",
      {
        integration,
        query: { filter: {}, sort: ["id"], limit: 500, skip: 0, total: false },
        include: ["item"],
        format: { dataAsArray: true, groupIncludedByType: true },
      },
    ],
    [
      "admin.publishSignals",
      "1.1",
      { integration, itemsBySignal: { [id]: { ...item, valueType: "enum", visible: true } }, createOnly: false },
    ],
    [
      "acme.dataFrame",
      "1.1",
      {
        query: { filter: { id: { $in: ["i"] } }, limit: 1 },
        data: { filter: { times: { $gte: window.notBefore, $lt: window.before } }, rollup: "PT1H" },
        include: [],
        format: { dataAsArray: false, groupIncludedByType: true },
      },
    ],
  ]);
});
