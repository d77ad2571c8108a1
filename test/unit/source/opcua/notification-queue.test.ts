import { expect, test } from "vitest";
import { defaultTimeRule } from "../../../../src/lib/device-time.ts";
import { NotificationQueue } from "../../../../src/source/opcua/connection/notification-queue.ts";
import type { PlainValue } from "../../../../src/source/opcua/types/plain-value.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { testRuntime } from "../../../support/runtime.ts";

const runtime = testRuntime();
const backfill = { arrived: () => [], untimed: () => [], stored: () => {} };
const value = (number: number): PlainValue => ({
  value: { dataType: 11, arrayType: 0, value: number },
  statusCode: { value: 0, name: "Good" },
  source: runtime.clock.now(),
  server: undefined,
});

test("items that others have replaced are not kept, and what waits of them comes out as it came", async () => {
  const queue = new NotificationQueue(runtime, { source: "line", time: { ...defaultTimeRule, clock: "source" } });
  const [gone, added] = [opcuaItem(), opcuaItem()];
  queue.values([[gone, value(1)]], "live", backfill, () => {});
  queue.forgetItems();
  queue.values([[added, value(2)]], "live", backfill, () => {});
  queue.values([[added, value(3)]], "live", backfill, () => {});

  const { readings, batches } = await queue.next(new AbortController().signal);

  expect(readings.map((each) => each.value)).toEqual([1, 2, 3]);
  expect(batches?.map(({ places }) => places)).toEqual([[gone], [added], [added]]);
  // The same list for the same items: the mapping remembers its work by it.
  expect(batches?.[1]?.places).toBe(batches?.[2]?.places);
});
