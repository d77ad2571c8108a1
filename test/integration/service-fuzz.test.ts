import { expect, test } from "vitest";
import { testService } from "../support/service.ts";
import { fuzz } from "../support/service-fuzz.ts";

// `service-fuzz.peer.test.ts` sends a hundred thousand requests.
test("any request gets a valid answer soon, and the service continues", async () => {
  await using service = await testService();
  const { requests, slowestMs, answers } = await fuzz(service, 2_000, 42);
  expect(requests).toBe(2_000);
  expect(slowestMs).toBeLessThan(2_000);
  // Some requests succeed, and others are refused at every stage.
  for (const code of [200, 400, 401, 415, -32700, -32600, -32601, -32602])
    expect(answers.get(code), `${code}`).toBeGreaterThan(0);
});
