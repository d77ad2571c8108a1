import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { ReadingBatch } from "../../../../src/core/reading.ts";
import type { Reading, TagId } from "../../../../src/core/source.ts";
import { batchOf, readingsOf } from "../../../../src/lib/readings/reading-batch.ts";
import { type ReadingsQueue, readingsQueue } from "../../../../src/source/modbus/polling/readings.ts";

const { signal } = new AbortController();
const cycle = (time: number, tags: number): ReadingBatch[] => [
  batchOf(
    Array.from(
      { length: tags },
      (_, tag): Reading => ({
        tag: tag as TagId,
        captures: {},
        address: `hr:${tag} u16`,
        value: time,
        time: epochMicros(time),
        clock: "agent",
        quality: "good",
        historical: false,
      }),
    ),
  ),
];
const taken = async (queue: ReadingsQueue, max: number, stop = signal) => readingsOf(await queue.take(max, stop));

test("readings since the last pull are delivered together, in order", async () => {
  const queue = readingsQueue(100);
  queue.offer(cycle(1, 2));
  queue.offer(cycle(2, 2));
  expect((await taken(queue, 100)).map((reading) => reading.value)).toEqual([1, 1, 2, 2]);
});

test("cycles stay whole when a delivery is full", async () => {
  const queue = readingsQueue(100);
  for (let i = 0; i < 3; i++) queue.offer(cycle(i, 4));
  expect(await taken(queue, 10)).toHaveLength(8);
  expect(await taken(queue, 10)).toHaveLength(4);
});

test("without a pull the oldest readings are dropped, and each tag reports once how many", async () => {
  const queue = readingsQueue(6);
  expect(queue.offer(cycle(1, 2)) + queue.offer(cycle(2, 2)) + queue.offer(cycle(3, 2))).toBe(0);
  expect(queue.offer(cycle(4, 2))).toBe(2);
  expect(queue.offer(cycle(5, 2))).toBe(2);
  expect(queue.size).toBe(6);
  const readings = await taken(queue, 100);
  expect(readings.slice(0, 2)).toMatchObject([
    {
      tag: 0,
      time: 2,
      value: undefined,
      quality: "bad",
      reason: "2 readings were dropped: the buffer did not take them in time",
    },
    { tag: 1, time: 2, value: undefined, quality: "bad" },
  ]);
  expect(readings.slice(2).map((reading) => reading.value)).toEqual([3, 3, 4, 4, 5, 5]);
  queue.offer(cycle(6, 1));
  expect(await taken(queue, 100)).toHaveLength(1);
});

test("waiting ends with a reading, with a failure after the last one, or with the signal", async () => {
  const queue = readingsQueue(6);
  const waiting = taken(queue, 10);
  queue.offer(cycle(1, 1));
  expect(await waiting).toHaveLength(1);

  const stop = new AbortController();
  const stopped = taken(queue, 10, stop.signal);
  stop.abort(new Error("stopped"));
  await expect(stopped).rejects.toThrow("stopped");

  queue.offer(cycle(2, 1));
  queue.fail(new Error("gone"));
  expect(await taken(queue, 10)).toHaveLength(1);
  await expect(taken(queue, 10)).rejects.toThrow("gone");
});
