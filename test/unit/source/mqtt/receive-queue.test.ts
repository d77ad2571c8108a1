import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Reading, TagId } from "../../../../src/core/source.ts";
import { type Batch, receiveQueue } from "../../../../src/source/mqtt/receiver/receive-queue.ts";
import { runs } from "../../../support/property.ts";

const { signal } = new AbortController();
const monotonic = () => 0;

test("packets are acknowledged once in the order of arrival, however batches are delivered and stored", async () => {
  // A step adds a message with this many readings, takes a batch, or stores the taken batch with this number.
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ put: fc.integer({ min: 0, max: 5 }), held: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant("settle" as const) },
    { weight: 2, arbitrary: fc.constant("take" as const) },
    { weight: 2, arbitrary: fc.record({ store: fc.nat(10) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const acknowledged: number[] = [];
      const queue = receiveQueue({
        maxReadings: 8,
        monotonic,
        acknowledge: (held) => acknowledged.push(...held),
        onRoom: () => {},
      });
      const sent: number[] = [];
      const taken: Batch[] = [];
      let waiting = 0;
      for (const each of steps) {
        if (each === "settle") queue.settle();
        else if (each === "take") {
          if (waiting === 0) continue;
          const batch = await queue.take(signal);
          expect(batch.readings.length).toBeLessThanOrEqual(8);
          waiting -= batch.readings.length;
          taken.push(batch);
        } else if ("store" in each) {
          const [batch] = taken.splice(each.store % Math.max(1, taken.length), 1);
          if (batch) queue.release(batch);
        } else if (!queue.full) {
          if (each.held) sent.push(sent.length + 1);
          queue.put(each.held ? sent.length : undefined, ({ readings }) => readings.push(...someReadings(each.put)));
          waiting += each.put;
        }
        expect(acknowledged).toEqual(sent.slice(0, acknowledged.length));
      }
      for (const batch of taken) queue.release(batch);
      while (waiting > 0) {
        const batch = await queue.take(signal);
        waiting -= batch.readings.length;
        queue.release(batch);
      }
      queue.settle();
      queue.settle();
      expect(acknowledged).toEqual(sent);
    }),
    runs(300),
  );
});

test("a message with more readings than a batch is delivered in several, acknowledged with the last", async () => {
  const acknowledged: number[] = [];
  const queue = receiveQueue({
    maxReadings: 4,
    monotonic,
    acknowledge: (held) => acknowledged.push(...held),
    onRoom: () => {},
  });
  queue.put(1, ({ readings }) => readings.push(...someReadings(1)));
  queue.put(2, ({ readings }) => readings.push(...someReadings(9)));
  const sizes: number[] = [];
  for (let i = 0; i < 4; i++) {
    const batch = await queue.take(signal);
    sizes.push(batch.readings.length);
    queue.release(batch);
    expect(acknowledged).toEqual(i < 3 ? [1] : [1, 2]);
  }
  expect(sizes).toEqual([1, 4, 4, 1]);
});

test("queued readings are still delivered when the connection is lost, then the loss is reported", async () => {
  const queue = receiveQueue({ maxReadings: 8, monotonic, acknowledge: () => {}, onRoom: () => {} });
  queue.put(1, ({ readings }) => readings.push(...someReadings(2)));
  queue.fail(new Error("lost"));
  expect((await queue.take(signal)).readings).toHaveLength(2);
  await expect(queue.take(signal)).rejects.toThrow("lost");
});

test("the queue is full at its capacity and signals when it has room again", async () => {
  let room = 0;
  const queue = receiveQueue({ maxReadings: 4, monotonic, acknowledge: () => {}, onRoom: () => room++ });
  queue.put(undefined, ({ readings }) => readings.push(...someReadings(3)));
  expect(queue.full).toBe(false);
  queue.put(undefined, ({ readings }) => readings.push(...someReadings(3)));
  expect(queue.full).toBe(true);
  expect((await queue.take(signal)).readings).toHaveLength(3);
  expect(queue.full).toBe(false);
  expect(room).toBe(1);
});

function someReadings(count: number): Reading[] {
  return Array.from({ length: count }, (_, value) => ({
    tag: 0 as TagId, // the index of its tag
    captures: {},
    address: "a",
    value,
    time: epochMicros(0),
    clock: "agent",
    quality: "good",
    historical: false,
  }));
}
