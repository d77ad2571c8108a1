import { expect, test, vi } from "vitest";
import { flipBits, fullSegment } from "../../../support/bit-flips.ts";
import { seed } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

test(`a flipped bit in any byte of a full segment is noticed, costs one record at most, and the loss is exact, seed ${seed}`, () => {
  const segment = fullSegment();
  const random = seeded(seed);
  const bits = Array.from(segment, (_, byte) => byte * 8 + Math.floor(random() * 8));

  const { flips, wrong, costly } = flipBits(segment, bits);

  expect(flips).toBeGreaterThan(60_000);
  expect(wrong).toEqual([]);
  expect(costly).toBeGreaterThan(50_000);
});
