// The whole agent on a gateway whose clock is an hour behind the clocks of the devices.
import { expect, test } from "vitest";
import { openAgent } from "../../../src/agent/agent.ts";
import { epochMicros } from "../../../src/core/point.ts";
import type { Sink } from "../../../src/core/sink.ts";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { head, load, withPassword } from "../../support/config.ts";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const hourUs = 3_600e6;

test("the service gets the times of two devices, and the status names the wrong clock", async () => {
  using folder = temporaryFolder();
  await using broker = await openMqttBroker();
  const real = systemClock();
  const clock = { ...real, now: () => epochMicros(real.now() - hourUs) };
  const config = await load(
    `${head}sources: { plant: { type: mqtt, url: "${broker.url}", tags: [{ topic: "plant/{device}/t", value: $.v, time: { at: $.ts }, input: "{device}" }] } }\n`,
    withPassword,
  );
  let bodies = "";
  const sink: Sink = {
    async send({ body }) {
      bodies += Buffer.from(body).toString("utf8");
      return { kind: "accepted", signals: new Map() };
    },
    async [Symbol.asyncDispose]() {},
  };
  const timeEvidence = { synchronised: async () => "unknown" as const, hasHardwareClock: async () => true };
  await using agent = await openAgent(
    { ...config, agent: { ...config.agent, dataDir: folder.path, ownSignals: "off" } },
    { version: "0", sink, timeEvidence },
    testRuntime({ clock }),
    new AbortController().signal,
  );
  await eventually(() => agent.status().sources[0]?.state === "online");
  const times = [new Date(), new Date(Date.now() - 1_000)].map((date) => date.toISOString());
  await broker.publish("plant/oven/t", JSON.stringify({ v: 1, ts: times[0] }), { qos: 1 });
  await broker.publish("plant/press/t", JSON.stringify({ v: 2, ts: times[1] }), { qos: 1 });
  await eventually(() => bodies.includes('"oven"') && bodies.includes('"press"'), 25_000);
  for (const time of times) expect(bodies).toContain(time.slice(0, 19));
  expect(agent.status().warnings[0]).toMatchObject({
    level: "error",
    message: expect.stringMatching(
      /^the clock is not set: 2 of 2 devices that give times say that it is 1h behind; readings/,
    ),
  });
});
