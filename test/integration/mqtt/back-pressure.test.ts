// When readings are not consumed, memory stays bounded, the connection stays open, and no message is lost.
import type { IPublishPacket } from "mqtt-packet";
import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";

const { signal } = new AbortController();
const tags = [{ topic: "a/#" }];

test("a delivery has at most 10,000 readings, and the rest waits at the broker until the delivery is stored", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const runtime = testRuntime();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  const count = 40_000;
  const payload = `"${"x".repeat(900)}"`;
  broker.connections[0]?.send(...Array.from({ length: count }, (_, i) => publish(`a/${i}`, payload)));
  await eventually(() => runtime.metric("source_mqtt_messages_total") >= 10_000);
  const socket = broker.connections[0]?.socket;
  await eventually(() => (socket?.writableLength ?? 0) > 0);
  const before = runtime.metric("source_mqtt_messages_total");
  await new Promise((resolve) => setImmediate(resolve));
  expect(runtime.metric("source_mqtt_messages_total")).toBe(before);
  expect(before).toBeLessThan(10_300);

  const puller = pull(source, signal);
  let seen = 0;
  while (seen < count) {
    const { readings, awaited } = await puller.next();
    expect(readings.length).toBeLessThanOrEqual(10_000);
    // QoS 0 has no acknowledgement, but back-pressure makes a broker with more to send wait nevertheless.
    if (readings.length === 10_000) expect(awaited).toBe(true);
    seen += readings.length;
  }
  broker.connections[0]?.send(publish("a/last", payload));

  expect(seen).toBe(count);
  expect((await puller.next()).awaited).toBe(false);
});

test("the connection survives several keep-alive intervals without a delivery being taken", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const options = { url: broker.url, keepalive: "1s" };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  client?.send(...Array.from({ length: 50_000 }, (_, i) => publish(`a/${i % 10}`, String(i))));

  await eventually(() => pings(client) >= 10);
  const puller = pull(source, signal);
  let seen = 0;
  while (seen < 50_000) seen += (await puller.next()).readings.length;

  expect(broker.connections).toHaveLength(1);
  await eventually(() => pings(client) >= 11);
});

test("a connection with incoming messages stays up, however late the ping answers arrive after them", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "pingreq") politeAnswer(packet, client);
  });
  const options = { url: broker.url, keepalive: "1s" };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const puller = pull(source, signal);

  for (let i = 0; pings(client) < 12; i++) {
    client?.send(publish("a/b", String(i)));
    expect(await puller.readings(1)).toMatchObject([{ value: i }]);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  expect(broker.connections).toHaveLength(1);
});

test("a connection without any packet, ping answers included, is closed", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "pingreq") politeAnswer(packet, client);
  });
  const options = { url: broker.url, keepalive: "1s" };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);

  await expect(pull(source, signal).next()).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: `connection to ${broker.url} lost: nothing was received for one and a half times keepalive`,
  });
});

test("opening does not wait for a SUBACK queued after messages that are not yet taken", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect")
      client.send(
        { cmd: "connack", reasonCode: 0, sessionPresent: true },
        ...Array.from({ length: 30_000 }, (_, i) => publish("a/b", String(i))),
      );
    else politeAnswer(packet, client);
  });

  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  const puller = pull(source, signal);
  let seen = 0;
  while (seen < 30_000) seen += (await puller.next()).readings.length;
  await eventually(() => source.details?.()["subscriptions"] === 1);
});

test("messages that arrived while a delivery was stored are delivered when the source stops", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const runtime = testRuntime();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  const stop = new AbortController();
  const [client] = broker.connections;
  client?.send(publish("a/b", "1"));
  const values: unknown[] = [];

  for await (const { readings } of source.deliveries(stop.signal)) {
    if (values.length === 0) {
      client?.send(publish("a/b", "2"), publish("a/b", "3"));
      await eventually(() => runtime.metric("source_mqtt_messages_total") === 3);
      stop.abort();
    }
    values.push(...readings.map(({ value }) => value));
  }

  expect(values).toEqual([1, 2, 3]);
});

function publish(topic: string, payload: string): IPublishPacket {
  return { cmd: "publish", topic, payload, qos: 0, dup: false, retain: false };
}

function pings(client: ScriptedClient | undefined): number {
  return (client?.packets ?? []).filter(({ cmd }) => cmd === "pingreq").length;
}
