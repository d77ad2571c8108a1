// What a whole backlog takes, too long for each run of the tests.
import { expect, test } from "vitest";
import { framesOf, windowOf } from "../../support/packing.ts";
import { unrelated } from "../../support/packing-workloads.ts";

test("B: an hour of 1,000 unrelated series drains in at most 53 requests", () => {
  // A window holds what 8 MiB / 2.3 are, more than all of it.
  expect(framesOf(windowOf(unrelated(3_600)), 8 * 2 ** 20).length).toBeLessThanOrEqual(53);
});
