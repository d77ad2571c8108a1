// The yield over a whole backlog. A peer test because it takes long.
import { expect, test } from "vitest";
import { framesOf, windowOf } from "../../support/packing.ts";
import { unrelated } from "../../support/packing-workloads.ts";

test("B: an hour of 1,000 unrelated series drains in at most 53 requests", () => {
  // A window of 8 MiB / 2.3 points exceeds the number of points here.
  expect(framesOf(windowOf(unrelated(3_600)), 8 * 2 ** 20).length).toBeLessThanOrEqual(53);
});
