import { expect, test } from "vitest";
import { Since } from "../../../src/lib/time/clock.ts";
import { ManualClock } from "../../support/runtime.ts";

test("setting the clock from 1970 to today does not turn minutes into decades", async () => {
  const clock = new ManualClock("1970-01-01T00:01:00Z");
  const since = new Since(clock);
  await clock.advance(60_000);
  clock.stepWall(56 * 365 * 86_400_000);
  expect(clock.now() - since.time).toBe(60_000_000);
  clock.stepWall(-3_600_000);
  expect(clock.now() - since.time).toBe(60_000_000);
});

test("the start time stays the same while the clock only drifts, and changes when the state begins again", async () => {
  const clock = new ManualClock();
  const since = new Since(clock);
  const began = clock.now();
  await clock.advance(5_000);
  clock.stepWall(300);
  expect(since.time).toBe(began);
  since.restart();
  expect(since.time).toBe(clock.now());
});
