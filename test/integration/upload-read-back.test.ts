// Reading back data that exceeds the span of one request.
import { expect, test } from "vitest";
import { joinedFrames, rowsOf } from "../../src/cli/data/read-rows.ts";
import { epochMicros, type InputId, type SignalId } from "../../src/core/point.ts";
import { itemData, itemSeries, longestSpan, pageEnd, readRollup } from "../../src/upload/signals/item-data.ts";
import type { DataFrame } from "../../src/wire/results.ts";
import { methodCaller } from "../support/method-caller.ts";
import { fails, ScriptedService, says } from "../support/scripted-service.ts";
import { integration, testService } from "../support/service.ts";

const day = 86_400e6;
const now = Math.floor(Date.now() / 1_000) * 1e6;
const ago = (micros: number) => epochMicros(now - micros);
const text = (micros: number) => new Date(micros / 1_000).toISOString().replace(".000", "");
const item = (id: string) => ({ input: "a", item: id, unit: "", enumeration: false });

test.for(["1.0", "1.1beta1", "1.1"] as const)(
  "a span longer than the service permits is read in pages, each bucket once, at version %s",
  async (apiVersion) => {
    await using service = await testService();
    const times = [900, 399, 100, 50, 1].map((days) => text(ago(days * day)));
    const data = { times, series: { a: [1, 2, 3, 4, 5] } };
    const inserted = await service.call("integration.insert", { integration, data });
    const id: string = inserted.body?.result?.["signalsByInput"].a.id;
    const view = { name: "a", type: "numeric", sourceType: "measurement" };
    const items = await service.call("admin.publishSignals", { integration, itemsBySignal: { [id]: view } });
    const a: string = items.body?.result?.["itemsBySignal"][id].id;
    await using client = await methodCaller(service.url, { apiVersion });
    const { signal } = new AbortController();
    const frames = async (rollup: string | undefined) => {
      const query = { items: [a], from: ago(1_000 * day), before: ago(0), rollup };
      const all: DataFrame[] = [];
      for await (const frame of itemData(client.caller, query, signal)) all.push(frame);
      return all;
    };
    const raw = await frames(undefined);
    expect(raw.flatMap(({ times: of }) => of)).toEqual(times);
    expect(raw.length).toBeLessThanOrEqual(30);
    const weeks = await frames("P1W");
    expect(weeks.flatMap(({ series }) => series[`${a}_count`] ?? [])).toEqual([1, 1, 1, 1, 1]);
    expect(weeks.length).toBe(apiVersion === "1.1" ? 1 : 3);
    const window = (await frames("window")).reduce<DataFrame | undefined>(
      (whole, frame) => joinedFrames(whole, frame),
      undefined,
    );
    const columns = ["count", "min", "max", "sum", "avg"];
    expect(rowsOf(window ?? { times: [], series: {} }, item(a), "csv", columns)).toMatch(/^a,[^,]+,5,1,5,15,3\n$/);
  },
);

test.for(["1.1beta1", "1.1"] as const)(
  "a plot knows from the item which points it may connect, at version %s",
  async (apiVersion) => {
    await using service = await testService();
    await using client = await methodCaller(service.url, { apiVersion });
    const data = { times: [text(ago(60e6))], series: { line: [1], setpoint: [2] } };
    const inserted = await service.call("integration.insert", { integration, data });
    const idOf = (input: string): SignalId => inserted.body?.result?.["signalsByInput"][input].id;
    const view = { type: "numeric", sourceType: "measurement" };
    const itemsBySignal = {
      [idOf("line")]: { ...view, name: "line", gapDetection: "PT2M" },
      [idOf("setpoint")]: { ...view, name: "setpoint" },
    };
    await service.call("admin.publishSignals", { integration, itemsBySignal });
    const series = async (input: string, from: number) =>
      await itemSeries(
        client.caller,
        { input: input as InputId, id: idOf(input) },
        { from: ago(from), before: ago(0) },
        new AbortController().signal,
      );
    expect(await series("line", day / 24)).toMatchObject({ values: [1], gapMs: 120_000, holds: false });
    expect(await series("line", day)).toMatchObject({ values: [1], min: [1], bucketMs: 120_000, gapMs: 120_000 });
    const setpoint = await series("setpoint", day);
    expect(setpoint).toMatchObject({ values: [2], holds: true });
    expect(setpoint).not.toHaveProperty("gapMs");
  },
);

test("an answer that is too large is requested in smaller windows, and sparse data in larger ones", async () => {
  await using service = await ScriptedService.open();
  const minute = 60e6;
  // One point a second in the first hour and none afterwards. An answer contains at most 1,000 points.
  const points = Array.from({ length: 3_600 }, (_, i) => now - 30 * day + i * 1e6);
  const spans: number[] = [];
  service.otherwise = (exchange) => {
    // the params that itemData sends
    const { data } = exchange.request.params as unknown as { data: { notBefore: string; before: string } };
    const [from, before] = [Date.parse(data.notBefore) * 1_000, Date.parse(data.before) * 1_000];
    const times = points.filter((time) => time >= from && time < before);
    if (times.length > 1_000) return fails(-32602)(exchange);
    spans.push(before - from);
    const frame = { times: times.map(text), series: { i: times.map(() => 1) } };
    return says(() => ({ result: { data: frame } }))(exchange);
  };
  await using client = await methodCaller(service.url);
  const query = { items: ["i"], from: ago(30 * day), before: ago(0), rollup: undefined };
  const all: string[] = [];
  for await (const frame of itemData(client.caller, query, new AbortController().signal)) all.push(...frame.times);
  expect(all).toEqual(points.map(text));
  expect(spans[0]).toBe(15 * minute);
  expect(Math.max(...spans)).toBeGreaterThan(10 * day);
  expect(service.seen.length).toBeLessThan(20);
});

test("pages of a rollup end at the end of a bucket", () => {
  const week = readRollup("P1W", "1.1");
  const months = readRollup("P3M", "1.1");
  if (typeof week !== "object" || "wrong" in week || typeof months !== "object" || "wrong" in months) throw new Error();
  const monday = Date.UTC(2026, 0, 5) * 1_000;
  expect(pageEnd(monday + 1, 10 * day, week)).toBe(monday + 7 * day);
  expect(pageEnd(monday + 1, 1 * day, week)).toBe(monday + 14 * day);
  expect(pageEnd(Date.UTC(2026, 1, 3) * 1_000, 100 * day, months)).toBe(Date.UTC(2026, 3, 1) * 1_000);
});

test("durations are those of the interface", () => {
  const days = (rollup: string | undefined, version: "1.1beta1" | "1.1") => {
    const parsed = rollup === undefined ? undefined : readRollup(rollup, version);
    if (typeof parsed === "object" && "wrong" in parsed) return parsed.wrong;
    return longestSpan(parsed, version) / day;
  };
  const asked = [undefined, "PT1S", "PT1M", "P1D", "P30D", "window"];
  expect(asked.map((rollup) => days(rollup, "1.1beta1"))).toEqual([40, 40, 400, 400, 400, 400]);
  expect(asked.map((rollup) => days(rollup, "1.1"))).toEqual([40, 40, 400, 1_900, 3_660, Number.POSITIVE_INFINITY]);
  expect(days("P1M", "1.1beta1")).toContain("from version 1.1 on");
});
