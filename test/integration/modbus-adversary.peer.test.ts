// The adversary for longer than a quick run has time for.
import { expect, test } from "vitest";
import { endureMany } from "../support/modbus-endurance.ts";

test("of 50,000 replies of devices that do everything wrong no value is wrong, and no poll hangs", async () => {
  const { faults, answered } = await endureMany({ devices: 150, replies: 50_000, timeoutMs: 1_800_000 });

  expect(faults).toEqual([]);
  expect(answered).toBeGreaterThanOrEqual(50_000);
}, 1_810_000);
