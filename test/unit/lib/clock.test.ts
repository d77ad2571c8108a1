import { expect, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";

test("the monotonic time is that of the machine, so that processes can leave it to each other", () => {
  const machineMs = Number(process.hrtime.bigint()) / 1e6;
  expect(Math.abs(systemClock().monotonic() - machineMs)).toBeLessThan(10_000);
});
