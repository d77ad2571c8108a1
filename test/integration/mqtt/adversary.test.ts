// Brokers and loads at the limits of the protocol.
import type { IPublishPacket } from "mqtt-packet";
import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";
import { sparkplugPayload } from "../../support/sparkplug.ts";

const { signal } = new AbortController();
const tags = [{ topic: "line/{n}" }];

test("packet identifiers that wrap around after 65,535 are acknowledged once each, in the order of arrival", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const ids = Array.from({ length: 3_000 }, (_, i) => ((65_535 - 1_500 + i) % 65_535) + 1);
  client?.send(...ids.map((id, i) => publish(id, "line/a", String(i))));

  expect((await pull(source, signal).readings(ids.length)).map(({ value }) => value)).toEqual(ids.map((_, i) => i));

  await eventually(() => pubacks(client).length === ids.length);
  expect(pubacks(client)).toEqual(ids);
});

test("an identifier may be reused as soon as it was acknowledged", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const puller = pull(source, signal);
  for (let i = 1; i <= 20; i++) {
    client?.send(publish(1, "line/a", String(i)));
    expect(brief(await puller.readings(1))).toEqual([`line/a=${i}`]);
    await eventually(() => pubacks(client).length === i);
  }
});

test("with a receive maximum of 1 all messages arrive, one after the other", async () => {
  let next = 1;
  let unacknowledged = 0;
  await using broker = await scriptedBroker((packet, client) => {
    politeAnswer(packet, client);
    if (packet.cmd === "puback") unacknowledged--;
    if ((packet.cmd !== "subscribe" && packet.cmd !== "puback") || next > 500) return;
    unacknowledged++;
    client.send(publish(next, "line/a", String(next++)));
  });
  const options = { url: broker.url, session: { receiveMaximum: 1 } };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);
  const connect = await broker.connections[0]?.received("connect");

  const readings = await pull(source, signal).readings(500);

  expect(connect?.properties?.receiveMaximum).toBe(1);
  expect(readings.map(({ value }) => value)).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
  await eventually(() => unacknowledged === 0);
});

test("the broker's limits in CONNACK are shown, and its keep-alive takes precedence", async () => {
  const properties = { serverKeepAlive: 1, maximumQoS: 1, receiveMaximum: 5, maximumPacketSize: 500 };
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: 0, sessionPresent: false, properties });
    else politeAnswer(packet, client);
  });
  const options = { url: broker.url, keepalive: "60s" };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);

  expect(source.details?.()).toMatchObject({
    keepaliveSeconds: 1,
    "broker.maximumQoS": 1,
    "broker.receiveMaximum": 5,
    "broker.maximumPacketSize": 500,
  });
  await broker.connections[0]?.received("pingreq");
});

test("a subscription beyond the broker's limits is not sent: its tags show the reason, and others are not affected", async () => {
  const properties = {
    maximumPacketSize: 60,
    wildcardSubscriptionAvailable: false,
    sharedSubscriptionAvailable: false,
  };
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "connect") politeAnswer(packet, client);
    else client.send({ cmd: "connack", reasonCode: 0, sessionPresent: false, properties });
  });
  const long = "x".repeat(100);
  const topics = [
    "line/1/a",
    "line/+/b",
    "$share/agents/line/1/c",
    long,
    "line/1/d",
    "line/1/e",
    "line/1/f",
    "line/1/g",
  ];
  const tags = topics.map((topic) => ({ topic }));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  const refused = await pull(source, signal).readings(3);

  expect(refused.map(({ tag, reason }) => [tag, reason])).toEqual([
    [1, "the broker refused the subscription: it does not support wildcards in subscriptions (162)"],
    [2, "the broker refused the subscription: it does not support shared subscriptions (158)"],
    [3, "the broker refused the subscription: packet too large (149)"],
  ]);
  const packets = broker.connections[0]?.packets ?? [];
  const asked = packets.flatMap((packet) => (packet.cmd === "subscribe" ? [packet] : []));
  expect(asked.map(({ subscriptions }) => subscriptions.map(({ topic }) => topic))).toEqual([
    ["line/1/a", "line/1/d", "line/1/e", "line/1/f"],
    ["line/1/g"],
  ]);
  for (const { length } of asked) expect((length ?? 0) + 2).toBeLessThanOrEqual(60);
  expect(source.details?.()).toMatchObject({ subscriptions: 5, refusedSubscriptions: 3 });
});

test("hostile messages among 10,000 good ones do not affect these, and each is acknowledged in order", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const runtime = testRuntime();
  const text = { options: { url: broker.url }, tags: [{ topic: "line/{n}", value: "$.v" }] };
  await using source = await openMqttSource(text, runtime, signal);
  const [client] = broker.connections;
  const hostile: readonly [topic: string, payload: string][] = [
    ["line/a", '{"v":'],
    ["line/a", "NaN"],
    ["line/a", "[".repeat(10_000)],
    ["line/a", `${'{"v":'.repeat(5_000)}1${"}".repeat(5_000)}`],
    ["line/a", '{"v":{"__proto__":1}}'],
    ["line/a", ""],
    ["line/a", "x".repeat(1_100_000)],
    [`line/${"x".repeat(300)}`, "\0"],
    ["nobody/asked", '{"v":1}'],
    ["line/a", '{"v":1e400}'],
  ];
  const packets: IPublishPacket[] = [];
  const add = (topic: string, payload: string) => packets.push(publish((packets.length % 65_535) + 1, topic, payload));
  for (let i = 0; i < 10_000; i++) {
    const [topic, payload] = hostile[(i / 500) % hostile.length] ?? [];
    if (topic !== undefined && payload !== undefined) add(topic, payload);
    add("line/good", `{"v":${i}}`);
  }
  client?.send(...packets);

  const good: unknown[] = [];
  const puller = pull(source, signal);
  while (good.length < 10_000) {
    const delivery = await puller.next();
    good.push(...delivery.readings.filter(({ captures }) => captures["n"] === "good").map(({ value }) => value));
    delivery.ack();
  }

  expect(good).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
  await eventually(() => pubacks(client).length === packets.length);
  expect(pubacks(client)).toEqual(packets.map(({ messageId }) => messageId));
  expect(runtime.metric("source_mqtt_malformed_messages_total")).toBe(10);
  expect(source.unknown?.()).toEqual([{ address: "nobody/asked", count: 2, sample: '{"v":1}' }]);
});

test("a waiting Sparkplug message is delivered after 2 s, although no other arrives", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const text = { options: { url: broker.url }, tags: [{ topic: "spBv1.0/#", format: "sparkplugB" }] };
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using source = await openMqttSource(text, runtime, signal);
  const send = (topic: string, seq: number, value: number) => {
    const metrics = [{ name: "m", alias: 1, datatype: 10, double: value }];
    const payload = sparkplugPayload({ seq, metrics });
    broker.connections[0]?.send({ cmd: "publish", topic, payload, qos: 0, dup: false, retain: false });
  };
  send("spBv1.0/G/NBIRTH/E", 0, 0);
  send("spBv1.0/G/NDATA/E", 2, 2);

  const puller = pull(source, signal);
  expect((await puller.readings(1)).map(({ value }) => value)).toEqual([0]);
  await eventually(() => runtime.metric("source_mqtt_messages_total") === 2);
  const late = puller.readings(1);
  await clock.advance(2_500);
  expect((await late).map(({ value }) => value)).toEqual([2]);
  const request = await broker.connections[0]?.received("publish");
  expect(request?.topic).toBe("spBv1.0/G/NCMD/E");
});

test("Sparkplug messages that wait for others are delivered when the connection is lost", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const text = { options: { url: broker.url }, tags: [{ topic: "spBv1.0/#", format: "sparkplugB" }] };
  await using source = await openMqttSource(text, testRuntime(), signal);
  const [client] = broker.connections;
  for (const seq of [0, 2]) {
    const payload = sparkplugPayload({ seq, metrics: [{ name: "m", alias: 1, datatype: 10, double: seq }] });
    const topic = `spBv1.0/G/${seq === 0 ? "NBIRTH" : "NDATA"}/E`;
    client?.send({ cmd: "publish", topic, payload, qos: 0, dup: false, retain: false });
  }
  const puller = pull(source, signal);
  expect(await puller.readings(1)).toHaveLength(1);
  client?.socket.end();

  expect((await puller.readings(1)).map(({ value }) => value)).toEqual([2]);
  await expect(puller.next()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
});

function publish(messageId: number, topic: string, payload: string): IPublishPacket {
  return { cmd: "publish", messageId, topic, payload, qos: 1, dup: false, retain: false };
}

function pubacks(client: ScriptedClient | undefined): number[] {
  return (client?.packets ?? []).flatMap((packet) => (packet.cmd === "puback" ? [packet.messageId ?? 0] : []));
}
