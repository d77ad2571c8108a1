// Report by exception: dead band, minimum interval, heartbeat, and how a gap affects them.
import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros, type Point } from "../../../src/core/point.ts";
import { reading, type TriedMapping, tagId, tryMapping } from "../../support/mapping.ts";
import { runs } from "../../support/property.ts";

const values = (points: readonly (readonly [string, number])[]) => points.map(([, value]) => value);
const due = ({ mapping }: TriedMapping) => mapping.due().map(({ value }) => value);

/** Reads one value per second. Returns those that were stored. */
async function readEachSecond(tried: TriedMapping, given: readonly number[]): Promise<number[]> {
  const stored: number[] = [];
  for (const value of given) {
    stored.push(...values(tried.read(value)));
    await tried.clock.advance(1_000);
  }
  return stored;
}

test("without report every good reading is stored", async () => {
  expect(await readEachSecond(tryMapping([{}]), [1, 1, 1])).toEqual([1, 1, 1]);
  expect(await readEachSecond(tryMapping([{ report: "off" }]), [1, 1, 1])).toEqual([1, 1, 1]);
});

test("a dead band of 0 stores any change", async () => {
  const tried = tryMapping([{ report: {} }]);
  expect(await readEachSecond(tried, [1, 1, 1.0000001, 1.0000001, 1])).toEqual([1, 1.0000001, 1]);
  expect(tried.mapping.tags()[0]).toMatchObject({ readings: 5, stored: 3, filtered: 2 });
  expect(tried.runtime.metric("mapping_filtered_readings_total", { source: "bus1" })).toBe(2);
});

test("a dead band is measured from the last stored value, and a change equal to it is not stored", async () => {
  const tried = tryMapping([{ report: { deadband: 0.2 } }]);
  // As doubles, 0.3 − 0.1 and 0.8 − 0.6 are slightly more and less than 0.2.
  expect(await readEachSecond(tried, [0.1, 0.3, 0.31, 0.5, 0.51, 0.6, 0.8, 1])).toEqual([0.1, 0.31, 0.6, 1]);
});

test("a dead band in percent refers to the valid range, with the device's value for a missing bound", () => {
  const valid = tryMapping([{ valid: { min: 0, max: 200 }, report: { deadband: "0.5%" } }]);
  expect([100, 101, 101.1].flatMap((value) => values(valid.read(value)))).toEqual([100, 101.1]);

  const device = tryMapping([{ report: { deadband: "10 %" } }]);
  const { captures, tag } = reading(0);
  device.mapping.map({
    readings: [],
    descriptions: [{ tag, captures, signal: {}, range: { min: -50, max: 50 } }],
  });
  expect([0, 10, 10.5].flatMap((value) => values(device.read(value)))).toEqual([0, 10.5]);
});

test("a dead band in percent of the device's range is in the unit of the signal, after scaling", () => {
  const { mapping, read } = tryMapping([{ scale: -0.1, offset: 5, report: { deadband: "10 %" } }]);
  const { captures, tag } = reading(0);
  mapping.map({ readings: [], descriptions: [{ tag, captures, signal: {}, range: { min: 0, max: 100 } }] });
  // 10 % of the range from −5 to 5.
  expect([0, 10, 11].flatMap((value) => values(read(value)))).toEqual([5, 3.9]);
});

test("the value of a shared input that another tag stored is the one that a reading must differ from", () => {
  const { read } = tryMapping([
    { input: "lamp", shared: true, report: {} },
    { input: "lamp", shared: true, report: {} },
    { input: "lamp", shared: true },
  ]);
  const from = (index: number, value: number) => values(read(value, { tag: tagId(index), address: `cmd/${index}` }));
  const stored = [from(0, 1), from(1, 0), from(0, 1), from(1, 1), from(1, 0), from(2, 1), from(1, 0), from(0, 0)];
  expect(stored).toEqual([[1], [0], [1], [], [0], [1], [0], []]);
});

test("values of a shared input are compared with the last one after a clock is set back", () => {
  const { read, clock } = tryMapping([
    { input: "lamp", shared: true, report: {} },
    { input: "lamp", shared: true, report: {} },
  ]);
  const from = (index: number, value: number, aheadUs = 0) =>
    values(read(value, { tag: tagId(index), clock: "device", time: epochMicros(clock.now() + aheadUs) }));
  const stored = [from(0, 1, 3_600e6), from(0, 0), from(1, 1), from(1, 0), from(0, 1), from(0, 1)];
  expect(stored).toEqual([[1], [0], [1], [0], [1], []]);
});

test("the heartbeat of a shared input repeats its last value, whichever tag stored it", async () => {
  const shared = { input: "lamp", shared: true, report: { heartbeat: "10s" } };
  const { mapping, read, clock } = tryMapping([shared, shared]);
  read(1, { tag: tagId(0) });
  read(0, { tag: tagId(1) });
  await clock.advance(10_000);
  const points = mapping.map({ readings: [], descriptions: [], alive: [new Set([tagId(0), tagId(1)])] });
  expect(new Set(points.map(({ value }) => value))).toEqual(new Set([0]));
});

test("a heartbeat is stored only of a tag that the device has confirmed", async () => {
  const report = { heartbeat: "10s" };
  const { mapping, read, clock } = tryMapping([
    { input: "fast", report },
    { input: "slow", report },
  ]);
  read(1, { tag: tagId(0) });
  read(2, { tag: tagId(1) });
  await clock.advance(10_000);
  // A change of the other one may not be sent yet: the heartbeat would follow it with the value from before.
  expect(mapping.map({ readings: [], descriptions: [], alive: [new Set([tagId(0)])] })).toMatchObject([
    { input: "fast" },
  ]);
});

test("without a known range a dead band in percent stores everything and reports why", () => {
  const tried = tryMapping([{ report: { deadband: "1%" } }]);
  expect([5, 5, 5].flatMap((value) => values(tried.read(value)))).toEqual([5, 5, 5]);
  expect(tried.mapping.tags()[0]?.reason).toMatch(/neither valid nor the device gives a range/);
});

test("the newest of a burst waits for the end of the minimum interval", async () => {
  const tried = tryMapping([{ report: { minInterval: "1s" } }]);
  expect(values(tried.read(1))).toEqual([1]);
  await tried.clock.advance(200);
  expect(values(tried.read(2))).toEqual([]);
  await tried.clock.advance(200);
  expect(values(tried.read(3))).toEqual([]);
  expect(tried.mapping.nextDue).toBe(1_000);
  await tried.clock.advance(599);
  expect(due(tried)).toEqual([]);
  await tried.clock.advance(1);
  expect(due(tried)).toEqual([3]);
  expect(tried.mapping.nextDue).toBeUndefined();
  expect(tried.mapping.tags()[0]).toMatchObject({ stored: 2, filtered: 1 });
});

test("a held point keeps the time of its reading", async () => {
  const tried = tryMapping([{ report: { minInterval: "1s" } }]);
  const start = tried.clock.now();
  tried.read(1);
  await tried.clock.advance(300);
  tried.read(2);
  await tried.clock.advance(700);
  expect(tried.mapping.due()).toEqual([{ input: "a", time: start + 300_000, value: 2 }]);
});

test("a held value is dropped when the value returns to the stored one", async () => {
  const tried = tryMapping([{ report: { minInterval: "1s", deadband: 0.5 } }]);
  tried.read(1);
  await tried.clock.advance(100);
  tried.read(5);
  await tried.clock.advance(100);
  tried.read(1.2);
  await tried.clock.advance(2_000);
  expect(due(tried)).toEqual([]);
  expect(tried.mapping.tags()[0]).toMatchObject({ readings: 3, stored: 1, filtered: 2 });
});

test("a held value is stored at the end", async () => {
  const tried = tryMapping([{ report: { minInterval: "1h" } }]);
  tried.read(1);
  await tried.clock.advance(100);
  tried.read(2);
  expect(tried.mapping.flush().map(({ value }) => value)).toEqual([2]);
  expect(tried.mapping.flush()).toEqual([]);
});

test("a held value is stored before the first value after a reconnection or a bad value", async () => {
  const held = async () => {
    const tried = tryMapping([{ report: { minInterval: "1h" } }]);
    tried.read(1);
    await tried.clock.advance(100);
    expect(tried.read(2)).toEqual([]);
    return tried;
  };

  const reconnected = await held();
  reconnected.mapping.reconnected();
  expect(values(reconnected.read(3))).toEqual([2, 3]);
  expect(reconnected.mapping.flush()).toEqual([]);

  const recovered = await held();
  recovered.read(undefined, { quality: "bad" });
  expect(values(recovered.read(3))).toEqual([2, 3]);
  expect(recovered.mapping.flush()).toEqual([]);
});

test("dropping the held value of one input keeps that of another due", async () => {
  const rules = ["a", "b"].map((input) => ({ input, report: { minInterval: "1s" } }));
  const { mapping, clock } = tryMapping(rules);
  const read = (tag: number, value: number) =>
    mapping.map({ readings: [reading(value, { tag: tagId(tag), time: clock.now() })], descriptions: [] });
  for (const value of [1, 2]) {
    read(0, value);
    read(1, value);
    await clock.advance(100);
  }

  read(0, 1);

  expect(mapping.nextDue).toBe(1_000);
  await clock.advance(1_000);
  expect(mapping.due().map(({ input, value }) => [input, value])).toEqual([["b", 2]]);
});

test("a heartbeat waits while a newer value is held, and after a reconnection for the first value", async () => {
  const tried = tryMapping([{ report: { minInterval: "1h", heartbeat: "10s" } }]);
  const keepAlive = () => tried.mapping.map({ readings: [], descriptions: [], alive: [new Set([tagId(0), tagId(1)])] });
  tried.read(1);
  await tried.clock.advance(5_000);
  tried.read(2);
  await tried.clock.advance(20_000);
  // A heartbeat with the value of 20 s ago would follow the newer, held value.
  expect(keepAlive()).toEqual([]);

  const lost = tryMapping([{ report: { heartbeat: "10s" } }]);
  lost.read(1);
  lost.mapping.reconnected();
  await lost.clock.advance(20_000);
  expect(lost.mapping.map({ readings: [], descriptions: [], alive: [new Set([tagId(0), tagId(1)])] })).toEqual([]);
});

test("a minimum interval never has more than one point", async () => {
  const tried = tryMapping([{ report: { minInterval: "1s" } }]);
  const stored: number[] = [];
  for (let at = 0; at < 10_000; at += 50) {
    if (tried.read(at).length > 0) stored.push(at);
    if (due(tried).length > 0) stored.push(at);
    await tried.clock.advance(50);
  }
  for (const [i, at] of stored.entries()) if (i > 0) expect(at - (stored[i - 1] ?? 0)).toBeGreaterThanOrEqual(1_000);
  expect(stored.length).toBe(10);
});

test("messages queued by a broker are thinned by their own times, not by their arrival", () => {
  const tried = tryMapping([{ report: { minInterval: "1s" } }]);
  const start = tried.clock.now();
  const kept = Array.from({ length: 100 }, (_, i) => reading(i, { time: epochMicros(start + i * 500_000) }));
  const points = tried.mapping.map({ readings: kept, descriptions: [] });
  expect(points.length).toBeGreaterThanOrEqual(49);
  expect(points.length).toBeLessThanOrEqual(51);
});

test("a device whose clock is set back by a year continues at once", async () => {
  const tried = tryMapping([{ report: { minInterval: "1s", heartbeat: "10s" } }]);
  tried.read(1);
  await tried.clock.advance(2_000);
  tried.clock.stepWall(-365 * 86_400_000);
  expect(values(tried.read(2))).toEqual([2]);
  await tried.clock.advance(2_000);
  expect(values(tried.read(3))).toEqual([3]);
  await tried.clock.advance(10_000);
  expect(values(tried.read(3))).toEqual([3]);
});

test("after the heartbeat the next good reading is stored although nothing changed", async () => {
  const tried = tryMapping([{ report: { deadband: 1, heartbeat: "3s" } }]);
  expect(await readEachSecond(tried, [1, 1, 1, 1.5, 1, 1, 1])).toEqual([1, 1.5, 1]);
});

test("a heartbeat of a live device repeats the last value with the current time", async () => {
  const tried = tryMapping([{ report: { heartbeat: "10s" } }, { input: "b", report: {} }]);
  const keepAlive = () => tried.mapping.map({ readings: [], descriptions: [], alive: [new Set([tagId(0), tagId(1)])] });
  tried.read(7);
  await tried.clock.advance(9_999);
  expect(keepAlive()).toEqual([]);
  await tried.clock.advance(1);
  expect(keepAlive()).toEqual([{ input: "a", time: tried.clock.now(), value: 7 }]);
  expect(keepAlive()).toEqual([]);
  await tried.clock.advance(10_000);
  expect(tried.mapping.map({ readings: [], descriptions: [] })).toEqual([]);
  tried.read(undefined, { quality: "bad" });
  expect(keepAlive()).toEqual([]);
});

test("the first value after a reconnection is stored whatever it is", async () => {
  const tried = tryMapping([{ report: { deadband: 10, minInterval: "1h" } }]);
  expect(await readEachSecond(tried, [1, 1])).toEqual([1]);
  tried.mapping.reconnected();
  expect(await readEachSecond(tried, [1, 1])).toEqual([1]);
});

test("the first good value after bad ones is stored whatever it is", async () => {
  const tried = tryMapping([{ report: { deadband: 10 } }]);
  tried.read(1);
  tried.read(undefined, { quality: "bad" });
  expect(values(tried.read(1))).toEqual([1]);
  expect(values(tried.read(1))).toEqual([]);
});

test("history is stored in full and does not count as a new value", async () => {
  const tried = tryMapping([{ report: { deadband: 10 } }]);
  tried.read(5);
  expect(values(tried.read(1, { historical: true, time: epochMicros(1) }))).toEqual([1]);
  expect(values(tried.read(1, { historical: true, time: epochMicros(2) }))).toEqual([1]);
  expect(tried.mapping.tags()[0]).toMatchObject({ value: 5, quality: "good", stored: 3 });
  tried.read(undefined, { historical: true, quality: "bad" });
  expect(tried.mapping.tags()[0]).toMatchObject({ value: 5, quality: "good" });
  expect(values(tried.read(5))).toEqual([]);
});

test("after a flush the stored value is never further away than the dead band, whatever was read", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 3_000 })), { minLength: 1 }),
      fc.integer({ min: 0, max: 10 }),
      fc.integer({ min: 1, max: 2_000 }),
      (steps, deadband, minInterval) => {
        const tried = tryMapping([{ report: { deadband, minInterval: `${minInterval}ms` } }]);
        let time = 0;
        let last = 0;
        let stored = 0;
        for (const [value, afterMs] of steps) {
          time += afterMs * 1_000;
          last = value;
          for (const [, point] of tried.read(value, { time: epochMicros(time) })) stored = point;
        }
        for (const { value } of tried.mapping.flush()) stored = value;
        expect(Math.abs(last - stored)).toBeLessThanOrEqual(deadband);
        const [state] = tried.mapping.tags();
        expect((state?.stored ?? 0) + (state?.filtered ?? 0)).toBe(steps.length);
      },
    ),
    runs(300),
  );
});

test("each of several inputs is released by its own interval with the time of its newest reading", async () => {
  const intervals = [700, 1_000, 2_500];
  /** Held points become due at multiples of this. */
  const gridMs = 50;
  const step = fc.record({ input: fc.nat(2), afterMs: fc.nat(900) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const rules = intervals.map((ms, i) => ({ input: `i${i}`, report: { minInterval: `${ms}ms` } }));
      const { mapping, clock } = tryMapping(rules);
      const readAt = new Map<number, number>();
      const newest: (number | undefined)[] = [];
      const stored: { readonly value: number; readonly atMs: number }[] = intervals.map(() => ({
        value: Number.NaN,
        atMs: Number.NEGATIVE_INFINITY,
      }));
      const take = (points: readonly Point[]) => {
        for (const { input, time, value } of points) {
          const i = Number(input.slice(1));
          expect(time).toBe(readAt.get(value));
          expect(clock.monotonic() - stored[i]!.atMs).toBeGreaterThanOrEqual(intervals[i]! - gridMs);
          stored[i] = { value, atMs: clock.monotonic() };
        }
        for (const [i, value] of newest.entries())
          if (value !== undefined && stored[i]!.value !== value)
            expect(mapping.nextDue).toBeLessThanOrEqual(clock.monotonic() + intervals[i]! + gridMs);
      };

      for (const [n, { input, afterMs }] of steps.entries()) {
        for (let leftMs = afterMs; leftMs > 0; ) {
          const toDueMs = (mapping.nextDue ?? Number.POSITIVE_INFINITY) - clock.monotonic();
          const waitMs = Math.min(leftMs, toDueMs);
          await clock.advance(waitMs);
          leftMs -= waitMs;
          take(mapping.due());
        }
        newest[input] = n;
        readAt.set(n, clock.now());
        take(mapping.map({ readings: [reading(n, { tag: tagId(input), time: clock.now() })], descriptions: [] }));
      }
      await clock.advance(10_000);
      take(mapping.due());
      expect(stored.map(({ value }) => value)).toEqual(intervals.map((_, i) => newest[i] ?? Number.NaN));
      expect(mapping.nextDue).toBeUndefined();
    }),
    runs(100),
  );
});
