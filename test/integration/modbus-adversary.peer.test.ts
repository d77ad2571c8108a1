// The adversary for longer than a quick run has time for.
import { expect, test } from "vitest";
import { endureMany } from "../support/modbus-endurance.ts";

test("of 100,000 replies of devices that do everything wrong no value is wrong, and no poll hangs", async () => {
  const { faults, answered } = await endureMany({ devices: 150, replies: 100_000, timeoutMs: 600_000 });

  expect(faults).toEqual([]);
  expect(answered).toBeGreaterThanOrEqual(100_000);
}, 610_000);
