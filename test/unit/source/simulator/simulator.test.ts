// The simulator: the shapes of its waves, shared times, and its behaviour without a consumer.
import { expect, test } from "vitest";
import type { Delivery } from "../../../../src/core/source.ts";
import { generator, simulatorDriver, simulatorTag, waves } from "../../../../src/source/simulator/driver.ts";
import { ManualClock, seeded, testRuntime } from "../../../support/runtime.ts";

type WaveOptions = Parameters<typeof generator>[0];
const options = (given: Partial<WaveOptions>) => ({ ...simulatorTag.parse({ period: "1s" }), ...given });
const first = (count: number, given: Partial<WaveOptions>) => {
  const next = generator(options(given), seeded(1));
  return Array.from({ length: count }, (_, i) => next(i * 250));
};

test("a sine begins in the middle, rises to max and falls to min", () => {
  expect(first(4, { wave: "sine", min: 10, max: 20 })).toEqual([15, 20, 15, 10]);
});

test("a square is max in the first half of its period and min in the second", () => {
  expect(first(4, { wave: "square", min: 1, max: 2 })).toEqual([2, 2, 1, 1]);
});

test("a triangle rises in the first half of its period and falls in the second", () => {
  expect(first(4, { wave: "triangle", min: 0, max: 8 })).toEqual([0, 4, 8, 4]);
});

test("sawtooth and ramp are the same and start again at min", () => {
  expect(first(5, { wave: "sawtooth", max: 8 })).toEqual([0, 2, 4, 6, 0]);
  expect(first(5, { wave: "ramp", max: 8 })).toEqual([0, 2, 4, 6, 0]);
});

test("a counter counts readings without end, or starts again after max", () => {
  expect(first(4, { wave: "counter", min: 5, step: 2 })).toEqual([5, 7, 9, 11]);
  expect(first(4, { wave: "counter", min: 0, max: 2 })).toEqual([0, 1, 2, 0]);
});

test("a constant is max, or min where that is all", () => {
  expect(first(2, { wave: "constant", max: 7 })).toEqual([7, 7]);
  expect(first(2, { wave: "constant", min: 3 })).toEqual([3, 3]);
});

test("no wave leaves its bounds or has more digits than asked for", () => {
  for (const wave of waves) {
    const next = generator(options({ wave, min: -5, max: 5, decimals: 2, period: 977 }), seeded(7));
    for (let at = 0; at < 20_000; at += 13) {
      const value = next(at);
      expect(value).toBeGreaterThanOrEqual(-5);
      expect(value).toBeLessThanOrEqual(5);
      expect(Math.round(value * 100) / 100).toBe(value);
    }
  }
});

const tag = (every: number, given: object) => ({ every, ...simulatorTag.parse(given) });
function open(tags: readonly ReturnType<typeof tag>[]) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const config = { name: "demo", agent: "gw", stateDir: "/nowhere", options: {}, tags };
  return { clock, stop, source: simulatorDriver.open(config, testRuntime({ clock }), stop.signal) };
}
const times = (delivery: Delivery | undefined) => new Set(delivery?.readings.map(({ time }) => time));

test("tags of one interval are read together and share a time on its grid", async () => {
  const { clock, stop, source } = open([
    tag(1_000, { wave: "counter" }),
    tag(1_000, { wave: "sine" }),
    tag(5_000, { wave: "counter" }),
  ]);
  const pulled = (await source).deliveries(stop.signal)[Symbol.asyncIterator]();

  const now = (await pulled.next()).value as Delivery;
  expect(now.readings.map((reading) => reading.tag)).toEqual([0, 1, 2]);
  expect(times(now).size).toBe(1);

  const next = pulled.next();
  await clock.advance(1_000);
  const later = (await next).value as Delivery;
  expect(later.readings.map(({ tag: id, value }) => [id, value])).toEqual([
    [0, 1],
    [1, expect.any(Number)],
  ]);
  expect([...times(later)][0]).toBe(Date.parse("2026-01-01T00:00:01Z") * 1_000);
});

test("intervals that passed without a pull are skipped, the newest one is delivered", async () => {
  const { clock, stop, source } = open([tag(1_000, { wave: "counter" })]);
  const pulled = (await source).deliveries(stop.signal)[Symbol.asyncIterator]();
  await pulled.next();
  await clock.advance(10_000);

  const { value } = await pulled.next();

  expect((value as Delivery).readings).toHaveLength(1);
  expect((value as Delivery).readings[0]).toMatchObject({ value: 1, time: Date.parse("2026-01-01T00:00:10Z") * 1_000 });
});

test("fast tags miss no interval while a delivery is stored", async () => {
  const { clock, stop, source } = open([tag(50, { wave: "counter" }), tag(400, { wave: "counter" })]);
  const pulled = (await source).deliveries(stop.signal)[Symbol.asyncIterator]();
  const seen: Delivery["readings"][number][] = [];
  for (let pull = 0; pull < 20; pull++) {
    const { value } = await pulled.next();
    seen.push(...(value as Delivery).readings);
    await clock.advance(250);
  }
  const quick = seen.filter((reading) => reading.tag === 0);
  expect(quick.map(({ value }) => value)).toEqual(Array.from({ length: 19 * 5 + 1 }, (_, i) => i));
  const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
  expect(quick.map(({ time }) => time)).toEqual(quick.map((_, i) => start + i * 50_000));
  expect(seen.filter((reading) => reading.tag === 1)).toHaveLength(Math.floor((19 * 250) / 400) + 1);
});

test("the deliveries end without an error when the signal aborts", async () => {
  const { stop, source } = open([tag(1_000, {})]);
  const pulled = (await source).deliveries(stop.signal)[Symbol.asyncIterator]();
  await pulled.next();
  const last = pulled.next();
  stop.abort(new Error("over"));
  await expect(last).resolves.toEqual({ done: true, value: undefined });
});

test("the forecast is the sum of all tags", () => {
  const config = {
    name: "demo",
    agent: "gw",
    stateDir: "/nowhere",
    options: {},
    tags: [tag(1_000, {}), tag(250, {})],
  };
  expect(simulatorDriver.forecast?.(config)).toEqual({ readingsPerSecond: 5, requestsPerSecond: 5 });
});
