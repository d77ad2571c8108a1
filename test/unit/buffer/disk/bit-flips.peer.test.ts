import { expect, test } from "vitest";
import { flipBits, fullSegment } from "../../../support/bit-flips.ts";

// A peer test only because it takes long.
test("every flipped bit of a full segment is noticed, costs one record at most, and the loss is exact", {
  timeout: 300_000,
}, () => {
  const segment = fullSegment();

  const { flips, wrong } = flipBits(segment, Array(segment.length * 8).keys());

  expect(flips).toBeGreaterThan(500_000);
  expect(wrong).toEqual([]);
});
