import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultTimeRule } from "../../../../src/lib/readings/device-time.ts";
import { notificationQueue } from "../../../../src/source/opcua/connection/notification-queue.ts";
import { PlainNumber, type PlainValue } from "../../../../src/source/opcua/types/plain-value.ts";
import { ClockCheck } from "../../../../src/source/opcua/types/reading.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { runs } from "../../../support/property.ts";
import { testRuntime } from "../../../support/runtime.ts";

const runtime = testRuntime();
const backfill = { arrived: () => [], untimed: () => [], stored: () => {} };
const value = (number: number): PlainValue => ({
  value: { dataType: 11, arrayType: 0, value: number },
  statusCode: { value: 0, name: "Good" },
  source: runtime.clock.now(),
  server: undefined,
});

test("replaced items are not kept, and their queued values are delivered unchanged", async () => {
  const queue = notificationQueue(runtime, { source: "line", time: { ...defaultTimeRule, clock: "source" } });
  const [gone, added] = [opcuaItem(), opcuaItem()];
  queue.values({ items: [gone], values: [value(1)] }, "live", backfill, () => {});
  queue.forgetItems();
  queue.values({ items: [added], values: [value(2)] }, "live", backfill, () => {});
  queue.values({ items: [added], values: [value(3)] }, "live", backfill, () => {});

  const { readings, batches } = await queue.next(new AbortController().signal);

  expect(readings.map((each) => each.value)).toEqual([1, 2, 3]);
  expect(batches?.map(({ places }) => places)).toEqual([[gone], [added], [added]]);
  // The same items share one list, because the mapping caches its work by it.
  expect(batches?.[1]?.places).toBe(batches?.[2]?.places);
});

test("a number without a reading object equals one with it", async () => {
  const arrival = runtime.clock.now();
  const fixed = { ...runtime, clock: { ...runtime.clock, now: () => arrival } };
  const time = fc.constantFrom(undefined, 5, arrival - 2e6, arrival, arrival + 400e6, arrival + 1e18);
  const plain = fc.record({
    dataType: fc.constantFrom(6, 10, 11),
    number: fc.constantFrom(0, -0, 1.5, Math.fround(0.1), Number.NaN, Number.POSITIVE_INFINITY),
    source: time,
    server: time,
  });
  const rule = fc.record({
    clock: fc.constantFrom("source", "server", "arrival"),
    unusable: fc.constantFrom("arrival", "drop", "keep"),
    maxAhead: fc.constant(300_000),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(plain, { minLength: 1, maxLength: 12 }),
      rule,
      fc.constantFrom("live", "former"),
      async (all, times, stream) => {
        const outcomes = [true, false].map(async (isOne) => {
          const queue = notificationQueue(fixed, { source: "line", time: times });
          const item = { ...opcuaItem(), clockCheck: new ClockCheck() };
          const values = all.map(({ dataType, number, source, server }) => {
            const one = new PlainNumber(dataType, number, source, server);
            return isOne ? one : { value: one.value, statusCode: one.statusCode, source, server };
          });
          const arrived: unknown[] = [];
          const losses = {
            arrived: (_: unknown, came: number) => {
              arrived.push(came);
              return [];
            },
            untimed: () => {
              arrived.push("untimed");
              return [];
            },
            stored: (_: unknown, stored: number) => arrived.push("stored", stored),
          };
          queue.values({ items: all.map(() => item), values }, stream, losses, () => arrived.push("all"));
          queue.alive(1, () => [item]);
          const delivery = await queue.next(new AbortController().signal);
          delivery.ack();
          const { readings, batches = [] } = delivery;
          return { readings, apart: batches.map(({ apart }) => [...(apart?.keys() ?? [])]), arrived };
        });
        const [one, other] = await Promise.all(outcomes);
        expect(one).toEqual(other);
      },
    ),
    runs(40),
  );
});
