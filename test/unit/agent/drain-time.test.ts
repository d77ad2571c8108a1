// When the backlog will be gone.
import { expect, test } from "vitest";
import { drainTime } from "../../../src/agent/drain-time.ts";

test("a backlog that shrinks is gone after what is left of the rate", () => {
  expect(drainTime(1_000_000, 1_100, 100)).toBe(1_000_000);
});

test("nothing is said of a backlog that grows, or of points that wait for their turn", () => {
  expect(drainTime(1_000_000, 100, 100)).toBeUndefined();
  expect(drainTime(2_000, 1_000, 100)).toBeUndefined();
  expect(drainTime(0, 0, 0)).toBeUndefined();
});
