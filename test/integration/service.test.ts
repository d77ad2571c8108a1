import { expect, test } from "vitest";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const times = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00.000001Z"];
const window = { notBefore: "2026-01-01T00:00:00Z", before: "2026-01-02T00:00:00Z" };

test("points inserted under Input IDs are read back under the items published from their signals", async () => {
  await using service = await testService();
  const saved = await service.call("integration.saveSignals", {
    integration,
    inputs: { "boiler.temp": { name: "Boiler", engUnit: "°C", labels: { site: ["north"] } } },
  });
  const signal = saved.body?.result?.signalsByInput["boiler.temp"].id;
  expect(saved.body?.result).toEqual({ signalsByInput: { "boiler.temp": { id: signal, created: true } } });

  const inserted = await service.call("integration.insert", {
    integration,
    data: { times, series: { "boiler.temp": [1.5, null, 3], "new/one": [null, 2, null] } },
  });
  expect(inserted.body?.result?.signalsByInput).toMatchObject({
    "boiler.temp": { id: signal, created: false },
    "new/one": { created: true },
  });
  const other = inserted.body?.result?.signalsByInput["new/one"].id;

  const publish = { name: "Boiler", type: "numeric", sourceType: "measurement" };
  const published = await service.call("admin.publishSignals", {
    integration,
    itemsBySignal: { [signal]: publish, [other]: { ...publish, name: "Other" } },
  });
  const item = published.body?.result?.itemsBySignal[signal].id;
  const otherItem = published.body?.result?.itemsBySignal[other].id;

  const selected = await service.call("admin.selectSignals", {
    integration,
    signals: { include: true, filter: { name: { $in: ["Boiler"] } } },
    items: { include: true },
  });
  expect(Object.keys(selected.body?.result?.signals)).toEqual([signal]);
  expect(selected.body?.result?.signals[signal]).toMatchObject({
    id: signal,
    inputId: "boiler.temp",
    item,
    name: "Boiler",
    engUnit: "°C",
    labels: { site: ["north"] },
    gapDetection: null,
  });
  expect(Object.keys(selected.body?.result?.items)).toEqual([item]);

  const read = await service.call("platform.selectItems", {
    items: { include: true },
    data: { include: true, ...window },
  });
  expect(Object.keys(read.body?.result?.items)).toEqual([item, otherItem]);
  expect(read.body?.result?.data).toEqual({ times, series: { [item]: [1.5, null, 3], [otherItem]: [null, 2, null] } });

  const rolled = await service.call("platform.selectItems", {
    items: { filter: { id: item } },
    data: { include: true, ...window, rollup: "PT1H" },
  });
  expect(rolled.body?.result).toEqual({
    data: {
      times: ["2026-01-01T00:00:00Z"],
      series: {
        [`${item}_count`]: [2],
        [`${item}_min`]: [1.5],
        [`${item}_max`]: [3],
        [`${item}_sum`]: [4.5],
        [`${item}_avg`]: [2.25],
      },
    },
  });
});

test("answered writes are stored after a restart, and a second service on the folder is refused", async () => {
  using folder = temporaryFolder();
  let item: string;
  {
    await using service = await testService({ data: folder.file("data") });
    const reply = await service.call("integration.insert", { integration, data: { times, series: { a: [1, 2, 3] } } });
    const signal = reply.body?.result?.signalsByInput.a.id;
    const view = { name: "A", type: "numeric", sourceType: "measurement" };
    const published = await service.call("admin.publishSignals", { integration, itemsBySignal: { [signal]: view } });
    item = published.body?.result?.itemsBySignal[signal].id;
    await expect(testService({ data: folder.file("data") })).rejects.toMatchObject({ code: "DATA_DIR_IN_USE" });
  }
  await using service = await testService({ data: folder.file("data") });
  const read = await service.call("platform.selectItems", { data: { include: true, ...window } });
  expect(read.body?.result?.data).toEqual({ times, series: { [item]: [1, 2, 3] } });
});

test("a refused insert lists every fault by path and stores nothing", async () => {
  await using service = await testService();
  const reply = await service.call("integration.insert", {
    integration,
    data: {
      times: ["2026-01-01T00:00:00Z", "noon"],
      series: { ok: [1, 2], "a b": [1, 2], short: [1], words: [1, "x"] },
    },
  });
  expect(reply.status).toBe(200);
  expect(reply.body?.error).toMatchObject({ code: -32602, message: "Invalid params" });
  expect(reply.body?.error?.data?.trace).toMatch(/^[0-9a-f]{20}$/);
  expect(reply.body?.error?.data?.params).toEqual({
    "data.times.1": ["must be an RFC 3339 timestamp"],
    "data.series.a b": [expect.stringContaining("must be an Input ID")],
    "data.series.short": ["not same length as times"],
    "data.series.words.1": ["must be a number or null"],
  });
  const selected = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  expect(selected.body?.result).toEqual({ signals: {} });
});

test("pausing refuses connections, and resuming accepts them on the same port with the data unchanged", async () => {
  await using service = await testService();
  await service.call("integration.insert", { integration, data: { times, series: { a: [1, 2, 3] } } });
  await service.pause();
  await expect(service.call("admin.selectSignals", { integration })).rejects.toMatchObject({
    cause: { code: "ECONNREFUSED" },
  });
  await service.resume();
  const again = await service.call("integration.insert", { integration, data: { times, series: { a: [1, 2, 3] } } });
  expect(again.body?.result?.signalsByInput.a.created).toBe(false);
});

test("points older than the retention are deleted within ten minutes, and younger ones stay", async () => {
  const clock = new ManualClock("2026-01-01T12:00:00Z");
  await using service = await testService({ retention: 6 * 3_600_000 }, testRuntime({ clock }));
  const old = ["2026-01-01T06:01:00Z", "2026-01-01T06:02:00Z"];
  const data = { times: [...old, "2026-01-01T11:00:00Z"], series: { a: [1, 2, null], b: [null, null, 3] } };
  const inserted = await service.call("integration.insert", { integration, data });
  const ids = Object.values<{ id: string }>(inserted.body?.result?.signalsByInput).map(({ id }) => id);
  const view = { name: "A", type: "numeric", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(ids.map((id) => [id, view]));
  await service.call("admin.publishSignals", { integration, itemsBySignal });
  const times = async () =>
    (await service.call("platform.selectItems", { data: { include: true, ...window } })).body?.result?.data.times;
  expect(await times()).toEqual(data.times);
  await clock.advance(600_000);
  expect(await times()).toEqual(["2026-01-01T11:00:00Z"]);
});

test("counters show the number and the spacing of the calls of each method", async () => {
  await using service = await testService();
  for (let i = 0; i < 3; i++)
    await service.call("integration.insert", { integration, data: { times: [], series: {} } });
  const traffic = service.counters().get("integration.insert");
  expect(traffic).toMatchObject({ requests: 3, maxStartsPerSecond: 3 });
  expect(traffic?.smallestSpacingMs).toBeLessThan(1_000);
  expect(service.counters().has("admin.selectSignals")).toBe(false);
});
