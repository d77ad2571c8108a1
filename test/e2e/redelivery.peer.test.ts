// A broker redelivers messages, some of them only in part, after several restarts of the agent.
// A proxy between mosquitto and the agent withholds the acknowledgements, so that this happens each time, not only
// under load.
import { expect, test } from "vitest";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { loadConfiguration } from "../support/mqtt-load.ts";
import { openMqttTap } from "../support/mqtt-tap.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signal = new AbortController().signal;
const lives = 5;

test.each([
  // The last published value replaces the others.
  ["replace", [[3, 0]]],
  // Each value is stored. A redelivered value is shifted past the stored ones, so that it replaces none.
  [
    "keep",
    [
      [1, 0],
      [2, 1],
      [3, 2],
    ],
  ],
] as const)(
  "values of one time that the broker delivers again in part, after kill upon kill, with sameTime: %s",
  {
    timeout: 300_000,
  },
  async (sameTime, expected) => {
    using folder = temporaryFolder();
    const runtime = testRuntime({ seed: 3 });
    await using service = await testService({ throttle: "queue" });
    await using broker = await openMosquitto();
    await using tap = await openMqttTap(broker.port);
    const { username, password: brokerPassword } = broker;
    const through = { url: `mqtt://127.0.0.1:${tap.port}`, username, password: brokerPassword };
    const configuration = loadConfiguration(folder.path, service.url, through).replace(
      "format: unixMs }",
      `format: unixMs }, sameTime: ${sameTime}`,
    );
    const options = { folder: folder.path, configuration };
    const publisher = await broker.publisher();
    const t = Math.floor(runtime.clock.now() / 1_000);
    const publish = (topic: string, time: number, value: number) =>
      publisher.publishAsync(`hall/${topic}`, JSON.stringify({ t: time, v: value }), { qos: 1 });

    {
      await using agent = await startAgent(options);
      const delivered = async (points: number) =>
        await eventually(async () => (await agent.status()).buffer.settledPoints === points);
      await eventually(async () => (await agent.status()).sources[0]?.state === "online");
      await publish("same", t, 1);
      await eventually(() => tap.acknowledged === 1);
      tap.withholdsAcknowledgements = true;
      await publish("same", t, 2);
      await publish("same", t, 3);
      await delivered(3);
      await agent.kill();
    }
    for (let life = 1; life <= lives; life++) {
      await using agent = await startAgent(options);
      await publish("next", t + life, life);
      // The previous agent may have delivered points without recording that. They are delivered again.
      await eventually(async () => {
        const { tags, buffer } = await agent.status();
        const next = tags.find(({ input }) => input === "hall.next");
        return next?.value === life && buffer.unsettledPoints === 0;
      });
      await agent.kill();
    }
    tap.withholdsAcknowledgements = false;
    await using last = await startAgent(options);
    await publish("next", t + lives + 1, 0);
    await eventually(async () => {
      const { tags, buffer } = await last.status();
      return tags.find(({ input }) => input === "hall.next")?.value === 0 && buffer.unsettledPoints === 0;
    });
    const { buffer } = await last.status();
    await last.stop();

    const span = { from: epochMicros((t - 60_000) * 1_000), before: epochMicros((t + 60_000) * 1_000) };
    const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
    const stored = await readBack(reader, span, runtime, signal);
    const places = [...(stored.get("hall.same" as InputId) ?? [])].map(([value, times]) => [
      value,
      Math.min(...times) - t * 1_000,
    ]);
    expect(places.toSorted(([a], [b]) => Number(a) - Number(b))).toEqual(expected);
    expect(buffer.unsettledPoints).toBe(0);
  },
);
