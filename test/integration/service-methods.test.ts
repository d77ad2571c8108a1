// The methods of the specification in its dialect: defaults, rules for saving, limits.
import { afterAll, beforeEach, expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { basic, password, testService } from "../support/service.ts";

// One service for all tests; each test has its own integration.
const clock = new ManualClock("2026-03-01T12:00:00.125Z");
const integrations = Array.from({ length: 32 }, (_, i) => `c8ktonqsahsmemfs7l${i.toString(32).padStart(2, "0")}`);
const service = await testService(
  { integrations: integrations.map((id) => ({ id, password: new Secret(password), grants: ["admin", "platform"] })) },
  testRuntime({ clock }),
);
afterAll(() => service[Symbol.asyncDispose]());
let integration = "";
/** IDs of the items that the test has published. */
let published: string[] = [];
beforeEach(() => {
  integration = integrations.pop() ?? "";
  published = [];
});
const as = () => ({ headers: { authorization: basic(integration, password) } });
const call = (method: string, params: object) => service.call(method, params, as());

async function result(method: string, params: object) {
  const { body } = await call(method, params);
  if (!body?.result) throw new Error(JSON.stringify(body));
  return body.result;
}
async function faults(method: string, params: object) {
  const { body } = await call(method, params);
  return body?.error?.code === -32602 ? body.error.data?.params : body;
}
const save = (inputs: object, more: object = {}) => result("integration.saveSignals", { integration, inputs, ...more });
const insert = (times: string[], series: object) =>
  result("integration.insert", { integration, data: { times, series } });
const signals = async () =>
  Object.values(
    (await result("admin.selectSignals", { integration, signals: { include: true, limit: 1_000 } })).signals,
  );
const itemView = { name: "Item", type: "numeric", sourceType: "measurement" };
/** Publishes the signal of an input. Returns the ID of the item. */
async function publish(input: string, view: object = itemView): Promise<string> {
  const { signals: found } = await result("admin.selectSignals", {
    integration,
    signals: { include: true, filter: { input } },
  });
  const [signal = ""] = Object.keys(found);
  const { itemsBySignal } = await result("admin.publishSignals", { integration, itemsBySignal: { [signal]: view } });
  published.push(itemsBySignal[signal].id);
  return itemsBySignal[signal].id;
}
const read = async (data: object, ids = published) =>
  (await result("platform.selectItems", { items: { filter: { id: { $in: ids } } }, data: { include: true, ...data } }))
    .data;
const day = { notBefore: "2026-01-01T00:00:00Z", before: "2026-01-02T00:00:00Z" };

test("a signal saved without attributes has the defaults and its Input ID as name, and only the requested members", async () => {
  const { signalsByInput } = await save({ "a/b:c": {} });
  const id = signalsByInput["a/b:c"].id;
  expect(id).toMatch(/^[a-v0-9]{19}[0g]$/);
  expect(await signals()).toEqual([
    {
      id,
      inputId: "a/b:c",
      item: null,
      meta: {
        contentHash: expect.stringMatching(/^[0-9a-f]{40}$/),
        createdAt: "2026-03-01T12:00:00.125Z",
        updatedAt: "2026-03-01T12:00:00.125Z",
      },
      annotations: {},
      name: "a/b:c",
      type: "numeric",
      description: "",
      labels: {},
      engUnit: "",
      enumValues: {},
      sourceType: "measurement",
      sampleInterval: null,
      gapDetection: null,
    },
  ]);
});

test("saving again replaces every attribute, adds to the existing annotations, and keeps the ID", async () => {
  const all = {
    annotations: { "acme/app/a": "1" },
    name: "Name",
    type: "enum",
    description: "Text",
    labels: { site: ["north", "roof"] },
    engUnit: "V",
    enumValues: { 0: "off", 9999: "on" },
    sourceType: "aggregation",
    sampleInterval: "PT1M",
    gapDetection: "P1DT12H",
  };
  const first = await save({ a: all });
  expect(await signals()).toMatchObject([{ ...all, gapDetection: "PT36H" }]);
  clock.stepWall(1_000);
  const second = await save({ a: { annotations: { "acme/app/b": "2" }, name: "Other" } });
  expect(second.signalsByInput.a).toEqual({ id: first.signalsByInput.a.id, created: false });
  expect(await signals()).toMatchObject([
    {
      annotations: { "acme/app/a": "1", "acme/app/b": "2" },
      name: "Other",
      type: "numeric",
      description: "",
      labels: {},
      engUnit: "",
      enumValues: {},
      sourceType: "measurement",
      sampleInterval: null,
      gapDetection: null,
      meta: { createdAt: "2026-03-01T12:00:00.125Z", updatedAt: "2026-03-01T12:00:01.125Z" },
    },
  ]);
  clock.stepWall(-1_000);
});

test("createOnly silently ignores Input IDs that have a signal", async () => {
  await save({ a: { name: "First" } });
  const { signalsByInput } = await save({ a: { name: "Second" }, b: {} }, { createOnly: true });
  expect(Object.keys(signalsByInput)).toEqual(["b"]);
  expect(await signals()).toMatchObject([{ name: "First" }, { name: "b" }]);
});

test("publishing creates an item once; later it is updated and keeps its ID; createOnly does not change it", async () => {
  const { signalsByInput } = await save({ a: {} });
  const signal = signalsByInput.a.id;
  const publication = async (view: object, more: object = {}) =>
    (await result("admin.publishSignals", { integration, itemsBySignal: { [signal]: view }, ...more })).itemsBySignal[
      signal
    ];
  const first = await publication(itemView);
  expect(first).toEqual({ id: expect.stringMatching(/^[a-v0-9]{20}$/), created: true });
  expect(await publication({ ...itemView, name: "Changed", engUnit: "V" })).toEqual({ id: first.id, created: false });
  expect(await publication({ ...itemView, name: "Ignored" }, { createOnly: true })).toEqual({
    id: first.id,
    created: false,
  });
  const { items } = await result("platform.selectItems", { items: { include: true, filter: { id: first.id } } });
  expect(items).toMatchObject({ [first.id]: { id: first.id, name: "Changed", engUnit: "V", labels: {} } });
  expect(Object.keys(items[first.id])).not.toContain("inputId");
  expect(await signals()).toMatchObject([{ id: signal, item: first.id, name: "a" }]);
});

test("a signal's data cannot be read before it is published", async () => {
  await insert(["2026-01-01T00:00:00Z"], { a: [1] });
  expect(await read(day)).toEqual({ times: [], series: {} });
  const item = await publish("a");
  expect(await read(day)).toEqual({ times: ["2026-01-01T00:00:00Z"], series: { [item]: [1] } });
});

test("times keep their microseconds, are returned sorted and in UTC, and the last write of a time counts", async () => {
  await insert(["2026-01-01T02:00:00.000002+02:00", "2026-01-01T00:00:00.0000019Z", "2026-01-01T00:00:00.000002Z"], {
    a: [1, 2, 3],
  });
  await insert(["2026-01-01T00:00:00.000003Z", "2026-01-01T00:00:00.000001Z"], { a: [null, 5] });
  const item = await publish("a");
  expect(await read(day)).toEqual({
    times: ["2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.000002Z"],
    series: { [item]: [5, 3] },
  });
});

test("null does not erase a stored value", async () => {
  await insert(["2026-01-01T00:00:00Z"], { a: [1] });
  await insert(["2026-01-01T00:00:00Z"], { a: [null] });
  const item = await publish("a");
  expect((await read(day)).series).toEqual({ [item]: [1] });
});

test("notBefore is included, before is not", async () => {
  await insert(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], { a: [1, 2] });
  await publish("a");
  expect((await read(day)).times).toEqual(["2026-01-01T00:00:00Z"]);
});

test("the default window begins 7 days ago and lasts 14 days", async () => {
  const at = (days: number) => new Date(clock.now() / 1_000 + days * 86_400_000).toISOString();
  const points = [-8, -7, 0, 6.9, 7.1].map(at);
  await insert(points, { a: [1, 2, 3, 4, 5] });
  const item = await publish("a");
  expect((await read({})).series[item]).toEqual([2, 3, 4]);
  expect((await read({ notBefore: at(-8), before: null })).series[item]).toEqual([1, 2, 3]);
  expect((await read({ notBefore: null, before: at(-7.5) })).series[item]).toEqual([]);
});

test("rollups have the start times of buckets that begin at whole hours, and leave out buckets without data", async () => {
  const times = ["2026-01-01T00:10:00Z", "2026-01-01T00:50:00Z", "2026-01-01T02:00:00Z"];
  await insert(times, { a: [1, 2, 6], b: [null, null, 1] });
  const [a, b] = [await publish("a"), await publish("b")];
  const window = { notBefore: "2026-01-01T00:05:00Z", before: "2026-01-01T03:00:00Z" };
  expect(await read({ ...window, rollup: "PT1H" })).toEqual({
    times: ["2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z"],
    series: {
      [`${a}_count`]: [2, 1],
      [`${a}_min`]: [1, 6],
      [`${a}_max`]: [2, 6],
      [`${a}_sum`]: [3, 6],
      [`${a}_avg`]: [1.5, 6],
      [`${b}_count`]: [null, 1],
      [`${b}_min`]: [null, 1],
      [`${b}_max`]: [null, 1],
      [`${b}_sum`]: [null, 1],
      [`${b}_avg`]: [null, 1],
    },
  });
  const whole = await read({ ...window, rollup: "window" }, [a]);
  expect(whole).toEqual({
    times: [window.notBefore],
    series: { [`${a}_count`]: [3], [`${a}_min`]: [1], [`${a}_max`]: [6], [`${a}_sum`]: [9], [`${a}_avg`]: [3] },
  });
});

test.each([
  [{ rollup: null }, 40],
  [{ rollup: "PT59.999999S" }, 40],
  [{ rollup: "PT1M" }, 400],
  [{ rollup: "window" }, 400],
])("with %j a window may be %i days long and not a microsecond longer", async (query, days) => {
  const notBefore = "2020-01-01T00:00:00Z";
  const end = new Date(Date.parse(notBefore) + days * 86_400_000).toISOString().slice(0, 19);
  const select = (before: string) =>
    faults("platform.selectItems", { items: { limit: 0 }, data: { include: true, notBefore, before, ...query } });
  expect(await select(`${end}Z`)).toMatchObject({ result: { data: { times: [], series: {} } } });
  expect(await select(`${end}.000001Z`)).toEqual({ "data.before": [expect.stringContaining(`at most ${days} days`)] });
});

test("a query gives 10 resources, at most 1000, and items with data at most 50", async () => {
  await save(Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}`, {}])));
  const count = async (query: object) =>
    Object.keys((await result("admin.selectSignals", { integration, signals: { include: true, ...query } })).signals)
      .length;
  expect(await count({})).toBe(10);
  expect(await count({ limit: null, skip: null })).toBe(10);
  expect(await count({ limit: 1_000 })).toBe(12);
  expect(await count({ limit: 5, skip: 10 })).toBe(2);
  expect(await count({ limit: 0 })).toBe(0);
  expect(await faults("admin.selectSignals", { integration, signals: { limit: 1_001 } })).toEqual({
    "signals.limit": ["must be at most 1000"],
  });
  const items = (limit: number, include: boolean) =>
    faults("platform.selectItems", { items: { limit }, data: { include } });
  expect(await items(1_000, false)).toMatchObject({ result: {} });
  expect(await items(1_001, false)).toEqual({ "items.limit": ["must be at most 1000"] });
  expect(await items(50, true)).toMatchObject({ result: {} });
  expect(await items(51, true)).toEqual({ "items.limit": ["must be at most 50"] });
});

test("a select has only the requested members", async () => {
  await save({ a: {} });
  const item = await publish("a");
  expect(await result("admin.selectSignals", { integration })).toEqual({});
  expect(await result("admin.selectSignals", { integration, signals: null, items: { include: true } })).toMatchObject({
    items: { [item]: { id: item } },
  });
  expect(await result("platform.selectItems", {})).toEqual({});
  expect(Object.keys(await result("platform.selectItems", { data: { include: true } }))).toEqual(["data"]);
});

test("an Input ID may be __proto__ or the name of a method of every object", async () => {
  const post = (method: string, params: string) =>
    service.post(
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"integration":"${integration}",${params}}}`,
      as(),
    );
  const times = JSON.stringify(["2026-01-01T00:00:00Z"]);
  const named = await post("integration.saveSignals", '"inputs":{"__proto__":{"name":"Prototype"},"toString":{}}');
  expect(Object.keys(named.body?.result?.signalsByInput)).toEqual(["__proto__", "toString"]);
  const inserted = await post("integration.insert", `"data":{"times":${times},"series":{"__proto__":[7]}}`);
  expect(inserted.text).toContain('"signalsByInput":{"__proto__":{"id":');
  expect(inserted.body?.result?.["signalsByInput"]["__proto__"].created).toBe(false);
  // Large enough that the service parses the bytes without JSON.parse.
  const many = Array.from({ length: 9_000 }, (_, i) => i);
  const large = await post(
    "integration.insert",
    `"data":{"times":${JSON.stringify(many.map((i) => new Date(i * 1_000).toISOString()))},"series":{"__proto__":${JSON.stringify(many)}}}`,
  );
  expect(large.text).toContain('"signalsByInput":{"__proto__":{"id":');
  const found = Object.values(await result("admin.selectSignals", { integration, signals: { include: true } }));
  expect(Object.values(Object(found[0]))).toMatchObject([{ inputId: "__proto__", name: "Prototype" }, {}]);
});

test("a key __proto__ that is not an Input ID is reported with the other faults of a request", async () => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"integration.saveSignals","params":{"integration":"${integration}","inputs":{"constructor":{"type":"text","labels":{"__proto__":["a"],"toString":["b"]}}},"createOnly":5}}`;
  expect((await service.post(body, as())).body?.error?.data?.params).toEqual({
    "inputs.constructor.labels.__proto__": ["must not be __proto__"],
    "inputs.constructor.type": [expect.stringContaining("must be")],
    createOnly: ["must be true or false"],
  });
  await save({ constructor: { labels: { toString: ["b"] }, annotations: { hasOwnProperty: "c" } } });
  expect(await signals()).toMatchObject([
    { inputId: "constructor", labels: { toString: ["b"] }, annotations: { hasOwnProperty: "c" } },
  ]);
});

test("an annotation is removed by null, of signals and of items, and the others stay", async () => {
  await save({ a: { annotations: { keep: "1", drop: "2", empty: "" } } });
  await save({ a: { annotations: { drop: null, never: null } } });
  expect(await signals()).toEqual([expect.objectContaining({ annotations: { keep: "1", empty: "" } })]);
  await publish("a", { ...itemView, annotations: { x: "1", y: "2" } });
  const id = await publish("a", { ...itemView, annotations: { x: null } });
  const { items } = await result("platform.selectItems", { items: { include: true, filter: { id } } });
  expect(items[id].annotations).toEqual({ y: "2" });
  expect(
    await faults("integration.saveSignals", { integration, inputs: { a: { annotations: { "no key": null } } } }),
  ).toEqual({
    "inputs.a.annotations.no key": [expect.stringContaining("key must be")],
  });
});

test("a number beyond a double is refused, the largest and smallest are kept", async () => {
  const body = (value: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":{"integration":"${integration}","data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[${value}]}}}}`;
  expect((await service.post(body("1e999"), as())).body?.error?.data?.params).toEqual({
    "data.series.a.0": ["must be within the range of a double"],
  });
  for (const [text, value] of [
    ["1.7976931348623157e308", Number.MAX_VALUE],
    ["5e-324", Number.MIN_VALUE],
    ["0.1", 0.1],
  ] as const) {
    await service.post(body(text), as());
    const item = await publish("a");
    expect((await read(day)).series[item]).toEqual([value]);
  }
});

test("an insert without times or without series is accepted, and creates its signals", async () => {
  expect(await insert([], { a: [] })).toMatchObject({ signalsByInput: { a: { created: true } } });
  expect(await insert(["2026-01-01T00:00:00Z"], {})).toEqual({ signalsByInput: {} });
});

test("publishSignals names what is missing, unknown or another integration's", async () => {
  const { signalsByInput } = await save({ a: {} });
  const id = signalsByInput.a.id;
  expect(
    await faults("admin.publishSignals", {
      integration,
      itemsBySignal: { [id]: { type: "", description: 5 }, c8ktonqsahsmemfs7lvg: itemView, short: itemView },
    }),
  ).toEqual({
    [`itemsBySignal.${id}.name`]: ["required"],
    [`itemsBySignal.${id}.type`]: ["required"],
    [`itemsBySignal.${id}.sourceType`]: ["required"],
    [`itemsBySignal.${id}.description`]: ["must be a text"],
    "itemsBySignal.c8ktonqsahsmemfs7lvg": ["no such signal in this integration"],
    "itemsBySignal.short": [expect.stringContaining("must be a Signal ID")],
  });
  expect(await faults("admin.publishSignals", { integration })).toEqual({ itemsBySignal: ["required"] });
  expect(await signals()).toMatchObject([{ item: null }]);
});

test("the first thousand of very many faults are listed and the others counted", async () => {
  const values = Array.from({ length: 5_000 }, () => "x");
  const times = values.map((_, i) => new Date(i).toISOString());
  const found = (await faults("integration.insert", { integration, data: { times, series: { a: values } } })) as Record<
    string,
    string[]
  >;
  expect(Object.keys(found).length).toBe(1_001);
  expect(found["*"]).toEqual(["4000 more faults are not listed"]);
});
