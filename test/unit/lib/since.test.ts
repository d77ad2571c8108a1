import { expect, test } from "vitest";
import { Since } from "../../../src/lib/since.ts";
import { ManualClock } from "../../support/runtime.ts";

test("a clock that is set from 1970 to today makes no decades of what lasts for minutes", async () => {
  const clock = new ManualClock("1970-01-01T00:01:00Z");
  const since = new Since(clock);
  await clock.advance(60_000);
  clock.stepWall(56 * 365 * 86_400_000);
  expect(clock.now() - since.time).toBe(60_000_000);
  clock.stepWall(-3_600_000);
  expect(clock.now() - since.time).toBe(60_000_000);
});

test("it is the same each time it is asked for while the clock only drifts, and another one when it begins anew", async () => {
  const clock = new ManualClock();
  const since = new Since(clock);
  const began = clock.now();
  await clock.advance(5_000);
  clock.stepWall(300);
  expect(since.time).toBe(began);
  since.restart();
  expect(since.time).toBe(clock.now());
});
