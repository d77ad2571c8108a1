// The service is unavailable for a while during a run: the scenario of outage.test.ts and outage.peer.test.ts.
import { expect } from "vitest";
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { deliverLast, loadConfiguration, publishLoad } from "../support/mqtt-load.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signal = new AbortController().signal;

const messagesPerSecond = 200;

/**
 * Interrupts the service for this long. Fails unless every message arrives once and no method is called more than once
 * a second.
 */
export async function outageDrill(seconds: number): Promise<void> {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const credentials = { username: "gw1", password: "secret" };
  await using opened = await openMqttBroker({ credentials });
  const broker = { url: opened.url, ...credentials };
  await using service = await testService({ throttle: "queue" });
  const from = runtime.clock.now();
  await using agent = await startAgent({
    folder: folder.path,
    configuration: loadConfiguration(folder.path, service.url, broker),
  });
  await eventually(async () => (await agent.status()).sources[0]?.state === "online");

  await using load = await publishLoad(broker, messagesPerSecond);
  await eventually(async () => (await agent.status()).upload.points > 0);
  await service.pause();
  await runtime.clock.sleep(seconds * 1_000, signal);
  expect((await agent.status()).upload.state).toBe("retrying");
  await service.resume();
  const published = await load.end();
  await deliverLast(load, agent, 60_000);

  for (const { maxStartsPerSecond, smallestSpacingMs } of service.counters().values()) {
    expect(maxStartsPerSecond).toBe(1);
    expect(smallestSpacingMs).toBeGreaterThanOrEqual(1_000);
  }
  const before = epochMicros(runtime.clock.now() + 60e6);
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, { from, before }, runtime, signal);
  expect(published.length).toBeGreaterThan(seconds * messagesPerSecond * 0.8);
  expect(published.filter(([input, value]) => stored.get(input)?.get(value)?.length !== 1)).toEqual([]);
}
