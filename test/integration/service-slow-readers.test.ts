import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { expect, test } from "vitest";
import { has } from "../support/platform.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { basic, integration, password, type TestService, testService } from "../support/service.ts";
import { storeItems } from "../support/service-items.ts";

/** Counts for each minute of 240 days: 9 MB, more than the system keeps for a client that does not read. */
const data = { filter: { times: { $gte: "2025-01-01T00:00:00Z", $lt: "2025-08-29T00:00:00Z" } }, rollup: "PT1M" };

test.runIf(has.boundedLoopback)("a client that reads a large answer too slowly is cut off", async () => {
  const clock = new ManualClock();
  await using service = await testService({}, testRuntime({ clock }));
  const idOf = await storeItems(service, {
    a: [
      ["2025-01-01T00:00:00Z", 1],
      ["2025-08-28T23:59:00Z", 2],
    ],
  });
  const items = [{ id: idOf("a"), timeAggregation: "count", alias: "n" }];
  const response = await begin(service, { items, data });
  const length = Number(response.headers["content-length"]);
  expect(length).toBeGreaterThan(8e6);
  await clock.advance(60_000 + length / 32);
  let received = 0;
  response.on("data", ({ length: bytes }: Buffer) => (received += bytes));
  await expect(once(response, "end")).rejects.toThrow("aborted");
  expect(received).toBeLessThan(length);
});

/** Resolves with the headers of the answer. The body stays unread. */
async function begin(service: TestService, params: object): Promise<IncomingMessage> {
  const sent = request(`${service.url}/rpc`, {
    method: "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      "x-api-version": "1.2",
      authorization: basic(integration, password),
    },
  });
  // A reset is also reported here, after the response has reported it.
  sent.on("error", () => {});
  sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "platform.evaluate", params }));
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (!response) throw new Error("no answer");
  return response;
}
