// Tags whose filters overlap without one covering the other: MQTT 5 brokers send a message once for each filter.
import { expect, test } from "vitest";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../support/scripted-broker.ts";

const { signal } = new AbortController();
const tags = [{ topic: "a/{x}/c" }, { topic: "{x}/b/c" }, { topic: "a/b/c" }, { topic: "end" }];

test("each tag reads a message once that the broker sends for each filter that matches", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;

  const requests = (client?.packets ?? []).flatMap((packet) =>
    packet.cmd === "subscribe" ? [[packet.subscriptions.map(({ topic }) => topic), packet.properties] as const] : [],
  );
  for (const [topics, properties] of requests)
    if (topics.includes("a/+/c") || topics.includes("+/b/c"))
      client?.send({
        cmd: "publish",
        topic: "a/b/c",
        payload: "1",
        qos: 0,
        dup: false,
        retain: false,
        ...(properties && { properties }),
      });
  client?.send({ cmd: "publish", topic: "end", payload: "2", qos: 0, dup: false, retain: false });

  const readings = await pull(source, signal).readings(4);
  expect(readings.map(({ tag }) => tag).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  expect(requests.map(([topics]) => topics)).toEqual([["end"], ["a/+/c"], ["+/b/c"]]);
});

test("a broker without subscription identifiers is asked for none, and the log names the filters", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect")
      client.send({
        cmd: "connack",
        reasonCode: 0,
        sessionPresent: false,
        properties: { subscriptionIdentifiersAvailable: false },
      });
    else politeAnswer(packet, client);
  });
  const runtime = testRuntime();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  broker.connections[0]?.send({ cmd: "publish", topic: "a/x/c", payload: "1", qos: 0, dup: false, retain: false });

  expect(brief(await pull(source, signal).readings(1))).toEqual(["a/x/c=1"]);
  expect(await broker.connections[0]?.received("subscribe")).not.toHaveProperty("properties");
  expect(runtime.lines.map(({ message }) => message)).toContain(
    "the broker supports no subscription identifiers: a message that several of these filters match may be stored once for each",
  );
});
