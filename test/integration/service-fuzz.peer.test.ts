import { expect, test } from "vitest";
import { testService } from "../support/service.ts";
import { fuzz } from "../support/service-fuzz.ts";

test("100,000 strange requests: no 500, no crash, no slow answer", { timeout: 600_000 }, async () => {
  await using service = await testService();
  const { requests, slowestMs } = await fuzz(service, 100_000, 4_242);
  expect(requests).toBeGreaterThanOrEqual(100_000);
  expect(slowestMs).toBeLessThan(2_000);
});
