import { afterAll, expect, test } from "vitest";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// On disk, because only then other threads than the connecting one answer queries.
const folder = temporaryFolder();
const service = await testService({ data: folder.path });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});
const call = async (method: string, params: object, version = "1.2") =>
  (await service.call(method, { integration, ...params }, { version })).body;
const result = async (method: string, params: object, version?: string) => {
  const body = await call(method, params, version);
  if (!body?.result) throw new Error(JSON.stringify(body));
  return body.result;
};
const faults = async (method: string, params: object, version?: string) => {
  const { code, data } = (await call(method, params, version))?.error ?? {};
  return { code, ...data?.params };
};
const window = { times: { $gte: "2026-03-01T00:00:00Z", $lt: "2026-03-02T00:00:00Z" } };
const minute = (n: number) => `2026-03-01T10:0${n}:00Z`;

/** Saves signals with these inputs, publishes an item for each, and inserts one point a minute. */
async function published(points: Readonly<Record<string, readonly (number | null)[]>>) {
  const inputs = Object.keys(points);
  const times = Object.values(points)[0]?.map((_, index) => minute(index)) ?? [];
  const { signalsByInput } = await result("integration.insert", { data: { times, series: points } });
  const signals = inputs.map((input): string => signalsByInput[input].id);
  const view = { name: "Level", valueType: "numeric", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(signals.map((signal) => [signal, view]));
  const made = await result("admin.signals.publish", { itemsBySignal });
  return { signals, items: signals.map((signal): string => made["itemsBySignal"][signal].id) };
}

async function valuesOf(item: string): Promise<unknown> {
  const frame = await result("platform.dataFrame", { query: { filter: { id: item } }, data: { filter: window } });
  return frame["data"].series[item];
}

const itemsOf = (
  selected: Record<string, any>, // oxlint-disable-line typescript/no-explicit-any
) =>
  selected["data"].map(({ relationships }: { relationships: { item: { data: { id: string } | null } } }) => {
    return relationships.item.data?.id ?? null;
  });

test("an item shows the points of every signal connected to it, of equal times those of the newest signal", async () => {
  const { signals, items } = await published({ a1: [1, 2, null], a2: [null, 20, 30], a3: [null, null, 300] });
  const query = { filter: { id: { $in: signals.slice(1) } } };
  const params = { item: items[0], query, include: ["item"], format: { groupIncludedByType: true } };
  const dryRun = await result("admin.signals.connect", { ...params, dryRun: true });
  expect(itemsOf(dryRun)).toEqual([items[0], items[0]]);
  expect(await valuesOf(items[0]!)).toEqual([1, 2]);
  const connected = await result("admin.connectSignals", params);
  expect(connected).toMatchObject({ meta: { total: 2 }, included: { items: [{ id: items[0] }] } });
  expect(itemsOf(connected)).toEqual([items[0], items[0]]);
  expect(await valuesOf(items[0]!)).toEqual([1, 20, 300]);
  expect(await valuesOf(items[1]!)).toEqual([]);
  const rolled = await result("platform.dataFrame", {
    query: { filter: { id: items[0] } },
    data: { filter: window, rollup: "PT1H" },
  });
  expect(rolled["data"].series).toMatchObject({ [`${items[0]}_sum`]: [321], [`${items[0]}_count`]: [3] });
});

test("a disconnected signal has no item, keeps its points, and can be published again", async () => {
  const { signals, items } = await published({ b1: [1, 2], b2: [null, 20] });
  const second = { query: { filter: { id: signals[1] } } };
  await result("admin.signals.connect", { item: items[0], ...second });
  const disconnected = await result("admin.signals.disconnect", { ...second, dryRun: true });
  expect(itemsOf(disconnected)).toEqual([null]);
  expect(await valuesOf(items[0]!)).toEqual([1, 20]);
  expect(itemsOf(await result("admin.disconnectSignals", second))).toEqual([null]);
  expect(await valuesOf(items[0]!)).toEqual([1, 2]);
  expect(itemsOf(await result("admin.disconnectSignals", second))).toEqual([null]);
  const view = { name: "Level", valueType: "numeric", sourceType: "measurement" };
  const again = await result("admin.signals.publish", { itemsBySignal: { [signals[1]!]: view } });
  const { id, created } = again["itemsBySignal"][signals[1]!];
  expect(created).toBe(true);
  expect(items).not.toContain(id);
  expect(await valuesOf(id)).toEqual([20]);
});

test("without a limit every matching signal is connected, or none with an error", async () => {
  await using large = await testService();
  const ask = async (method: string, params: object) =>
    (await large.call(method, { integration, ...params }, { version: "1.2" })).body;
  const save = (from: number, to: number) =>
    ask("integration.saveSignals", {
      inputs: Object.fromEntries(Array.from({ length: to - from }, (_, n) => [`s${from + n}`, {}])),
    });
  const saved = await save(0, 30);
  const id: string = saved?.result?.["signalsByInput"].s0.id;
  const view = { name: "Level", valueType: "numeric", sourceType: "measurement" };
  const made = await ask("admin.publishSignals", { itemsBySignal: { [id]: view } });
  const item: string = made?.result?.["itemsBySignal"][id].id;
  expect((await ask("admin.connectSignals", { item }))?.result?.["data"]).toHaveLength(30);
  expect((await ask("admin.disconnectSignals", { query: { limit: 10 } }))?.result?.["data"]).toHaveLength(10);
  await save(30, 1_001);
  const { error } = (await ask("admin.disconnectSignals", {})) ?? {};
  expect(error?.data?.params).toEqual({
    query: ["matches 1001 signals, a call can take 1000: narrow the filter or set a limit"],
  });
  const query = { filter: { item }, limit: 1 };
  expect((await ask("admin.selectSignals", { query }))?.result?.["meta"].total).toBe(20);
});

test("invalid parameters of connectSignals are reported, and nothing changes", async () => {
  const { signals, items } = await published({ c1: [1] });
  const query = { filter: { id: signals[0] } };
  expect(await faults("admin.signals.connect", { query })).toEqual({ code: -32602, item: ["required"] });
  expect(await faults("admin.signals.connect", { query, item: "c000000000000000000g", dryRun: 1 })).toEqual({
    code: -32602,
    item: ["no such item"],
    dryRun: ["must be true or false"],
  });
  expect(await faults("admin.signals.disconnect", { query: { limit: 1_001 } })).toEqual({
    code: -32602,
    "query.limit": ["must be at most 1000"],
  });
  const { body } = await service.call("admin.signals.connect", [integration, query, items[0]], { version: "1.2" });
  expect(body?.error).toMatchObject({ code: -32602, data: { params: { 0: ["takes params by name alone"] } } });
  expect(await valuesOf(items[0]!)).toEqual([1]);
});

test.each([
  ["admin.connectSignals", ["1.2beta1", "1.2"]],
  ["admin.disconnectSignals", ["1.2beta1", "1.2"]],
  ["admin.signals.connect", ["1.2"]],
  ["admin.signals.disconnect", ["1.2"]],
  ["admin.signals.select", ["1.2"]],
  ["admin.signals.publish", ["1.2"]],
  ["integration.signals.save", ["1.2"]],
  ["Platform.Items.Select", ["1.2"]],
])("%s is a method of %s alone", async (method, versions) => {
  const known: string[] = [];
  for (const version of ["1.0", "1.1beta1", "1.1", "1.2beta1", "1.2"])
    if ((await call(method, { format: "wrong" }, version))?.error?.code !== -32601) known.push(version);
  expect(known).toEqual(versions);
});

test("1.2 shows resources without hashes on demand, and says how it formats", async () => {
  const { items } = await published({ d1: [1] });
  const query = { filter: { id: items[0] } };
  const plain = await result("platform.items.select", { query, format: { includeResourceHashFields: false } });
  expect(plain["meta"].format).toEqual({
    dataAsArray: true,
    groupIncludedByType: false,
    flattenResourceFields: false,
    includeResourceHashFields: false,
  });
  expect(Object.keys(plain["data"][0].meta)).toEqual(["annotations", "createdAt", "updatedAt"]);
  const frame = await result("platform.dataFrame", { query, data: { filter: window }, include: ["item"] });
  expect(frame["meta"].format).toEqual({
    dataAsArray: false,
    groupIncludedByType: false,
    flattenResourceFields: false,
    includeResourceHashFields: true,
    usePathErrors: false,
  });
  expect(frame["included"][0].meta).toHaveProperty("attributesHash");
  // A strict public client of the early version fails on unknown members.
  const early = await result("platform.selectItems", { query }, "1.2alpha1");
  expect(early["meta"].format).toEqual({ dataAsArray: true, groupIncludedByType: false });
});

test("members of 1.2 that are not public are refused by name", async () => {
  const { signals, items } = await published({ e1: [1] });
  const public_ = "how that form looks is not public";
  const format = { flattenResourceFields: true, usePathErrors: true };
  expect(await faults("platform.items.select", { format })).toEqual({
    code: -32602,
    "format.flattenResourceFields": [`must be false: ${public_}`],
  });
  expect(await faults("platform.dataFrame", { format })).toEqual({
    code: -32602,
    "format.flattenResourceFields": [`must be false: ${public_}`],
    "format.usePathErrors": [`must be false: ${public_}`],
  });
  const view = { name: "Level", valueType: "numeric", sourceType: "measurement" };
  for (const [method, params] of [
    ["integration.signals.save", { inputs: { e1: {} } }],
    ["admin.signals.publish", { itemsBySignal: { [signals[0]!]: view } }],
  ] as const)
    expect(await faults(method, { ...params, result: "resources", include: ["item"] })).toMatchObject({
      code: -32602,
      result: [expect.stringContaining("not supported")],
      include: [expect.stringContaining("not supported")],
    });
  const evaluated = await faults("platform.evaluate", {
    items: [{ id: items[0], timeAggregation: "avg", alias: "a", engUnit: "°F" }],
    calculations: [{ formula: "a", alias: "b", engUnit: "°F" }],
    data: { rollup: "PT1H" },
  });
  expect(Object.keys(evaluated)).toEqual(["code", "items.0.engUnit", "calculations.0.engUnit"]);
});
