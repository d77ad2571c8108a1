// Acknowledged messages survive kill -9. The broker is an npm package. kill.peer.test.ts is the long form.
import { expect, test } from "vitest";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { killDrill } from "./kill-drill.ts";

/** Six agents start one after the other, possibly on a busy machine. Each wait within has its own limit. */
const timeout = 300_000;
const credentials = { username: "gw1", password: "secret" };

test("every message acknowledged to the broker is in the service after the agent was killed at random moments", {
  timeout,
}, async () => {
  await using broker = await openMqttBroker({ credentials });
  const result = await killDrill({
    broker: { url: broker.url, ...credentials },
    kills: 4,
    messagesPerSecond: 500,
    seed: 1,
  });
  expect(result).toMatchObject({ missing: [], repeated: [] });
  expect(result.published).toBeGreaterThan(500);
});
