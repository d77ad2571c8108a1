import { expect, test } from "vitest";
import { RateLimit } from "../../../src/lib/flow/rate-limited-log.ts";

test("a message is written once in ten seconds, with how often it was suppressed and all its points", () => {
  const limit = new RateLimit();

  expect(limit.admit("dropped", { points: 5 }, 0)).toEqual({ points: 5 });
  expect(limit.admit("dropped", { points: 6 }, 9_000)).toBeUndefined();
  expect(limit.admit("failed", {}, 9_000)).toEqual({});
  expect(limit.admit("dropped", { points: 7 }, 9_999)).toBeUndefined();
  expect(limit.admit("dropped", { points: 1 }, 10_001)).toEqual({ points: 14, suppressed: 2 });
  expect(limit.admit("dropped", { points: 2 }, 30_000)).toEqual({ points: 2 });
});
