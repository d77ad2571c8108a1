import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Reading, TagId } from "../../../../src/core/source.ts";
import { readingsOf } from "../../../../src/lib/readings/reading-batch.ts";
import { ReadingColumns } from "../../../../src/source/opcua/connection/notification-queue.ts";

test("only good, new numbers with the device's time need no reading object; all are returned unchanged", () => {
  const place = { tag: 0 as TagId, captures: {}, address: "ns=2;s=T" };
  const good = { ...place, time: epochMicros(1e15), clock: "device", quality: "good", historical: false } as const;
  const readings: readonly Reading[] = [
    { ...good, value: 1.5 },
    { ...good, value: 2.5, quality: "uncertain", reason: "the server reports UncertainLastUsableValue" },
    { ...good, value: 3.5, quality: "bad", reason: "the server reports BadNoCommunication" },
    { ...good, value: 4.5, historical: true },
    { ...good, value: 5.5, clock: "agent" },
    { ...good, value: true },
    { ...good, value: "open" },
    { ...good, value: undefined, quality: "bad", reason: "no value" },
    { ...good, value: Number.POSITIVE_INFINITY },
    { ...good, value: 6.5 },
  ];
  const columns = new ReadingColumns([place], readings.length + 1);
  for (const reading of readings) columns.add(0, reading);
  const batch = columns.batch();
  expect(columns.isFull).toBe(false);
  expect([...(batch.apart?.keys() ?? [])]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(readingsOf([batch])).toEqual(readings);
});
