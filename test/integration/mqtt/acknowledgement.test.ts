// A message is acknowledged after its readings are on disk, in the order of arrival, on the connection that delivered
// it.
import type { IPublishPacket } from "mqtt-packet";
import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();
const tags = [{ topic: "line/{n}" }];

test("no message is acknowledged before its delivery is", async () => {
  await using broker = await openMqttBroker();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const puller = pull(source, signal);
  await broker.publish("line/1", "21");

  const delivery = await puller.next();
  await broker.publish("line/2", "22");
  const second = await puller.next();

  expect(brief([...delivery.readings, ...second.readings])).toEqual(["line/1=21", "line/2=22"]);
  expect(delivery.awaited).toBe(true);
  expect(broker.acknowledged).toEqual([]);
  delivery.ack();
  await eventually(() => broker.acknowledged.length === 1);
  second.ack();
  await eventually(() => broker.acknowledged.length === 2);
  expect(broker.acknowledged).toEqual(["line/1 21", "line/2 22"]);
});

test("unacknowledged messages are redelivered on the next connection, acknowledged ones are not", async () => {
  await using broker = await openMqttBroker();
  using folder = temporaryFolder();
  const text = { options: { url: broker.url }, tags, stateDir: folder.path };
  {
    await using source = await openMqttSource(text, testRuntime(), signal);
    const puller = pull(source, signal);
    await broker.publish("line/1", "1");
    (await puller.next()).ack();
    await eventually(() => broker.acknowledged.length === 1);
    await broker.publish("line/2", "2");
    await puller.next();
    // Another round trip. An acknowledgement that was sent too early would have arrived by then.
    await broker.publish("line/3", "3");
    await puller.next();
    broker.cutConnections();
    await expect(puller.next()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  }
  await broker.publish("line/4", "4");

  await using source = await openMqttSource(text, testRuntime(), signal);

  expect(brief(await pull(source, signal).readings(3))).toEqual(["line/2=2", "line/3=3", "line/4=4"]);
  await eventually(() => broker.acknowledged.length === 4);
});

test("an acknowledgement for a lost connection is not sent on the next one", async () => {
  const acknowledged: number[] = [];
  await using broker = await scriptedBroker((packet, client, connection) => {
    politeAnswer(packet, client);
    if (packet.cmd === "subscribe") client.send(publish(7, `line/${connection}`, "1"));
    if (packet.cmd === "puback") acknowledged.push(connection);
  });
  const text = { options: { url: broker.url }, tags };
  await using first = await openMqttSource(text, testRuntime(), signal);
  const puller = pull(first, signal);
  const old = await puller.next();
  broker.connections[0]?.socket.destroy();
  await expect(puller.next()).rejects.toThrow(/closed the connection/);

  await using second = await openMqttSource(text, testRuntime(), signal);
  const fresh = await pull(second, signal).next();
  old.ack();
  fresh.ack();

  await eventually(() => acknowledged.length > 0);
  expect(acknowledged).toEqual([1]);
});

test("acknowledgements are sent in the order of arrival, whichever delivery is stored first", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const puller = pull(source, signal);
  client?.send(publish(1, "line/a", "1"), publish(2, "line/b", "2"));
  const first = await puller.next();
  client?.send(publish(3, "line/c", "3"), publish(4, "other", "4"));
  const second = await puller.next();

  second.ack();
  first.ack();

  await eventually(() => pubacks(client).length === 4);
  expect(pubacks(client)).toEqual([1, 2, 3, 4]);
});

test("a message without a tag or that cannot be decoded is acknowledged as well, in order", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const runtime = testRuntime();
  const wanted = [{ topic: "line/+", value: "$.v" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags: wanted }, runtime, signal);
  const [client] = broker.connections;
  client?.send(publish(1, "stranger", "1"), publish(2, "stranger", ""));
  await eventually(() => pubacks(client).length === 2);
  client?.send(publish(3, "line/a", "{"), publish(4, "stranger", "1"), publish(5, "line/a", '{"v":5}'));

  const delivery = await pull(source, signal).next();

  expect(delivery.readings).toMatchObject([
    { tag: 0, value: undefined, quality: "bad", reason: "payload is not JSON: {" },
    { tag: 0, value: 5, quality: "good" },
  ]);
  expect(pubacks(client)).toEqual([1, 2]);
  delivery.ack();
  await eventually(() => pubacks(client).length === 5);
  expect(runtime.metric("source_mqtt_unmatched_messages_total")).toBe(3);
  expect(runtime.metric("source_mqtt_malformed_messages_total")).toBe(1);
});

test("many acknowledgements are one write", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const chunks: number[] = [];
  client?.socket.on("data", (data) => chunks.push(data.length));
  client?.send(...Array.from({ length: 500 }, (_, i) => publish(i + 1, `line/${i}`, String(i))));
  const delivery = await pull(source, signal).next();
  expect(delivery.readings).toHaveLength(500);

  delivery.ack();

  await eventually(() => pubacks(client).length === 500);
  expect(chunks).toEqual([2_000]);
});

test("a QoS 2 message is not confirmed before it is on disk, and its exchange is completed", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    politeAnswer(packet, client);
    if (packet.cmd === "pubrec") client.send({ cmd: "pubrel", messageId: packet.messageId ?? 0 });
  });
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  const [client] = broker.connections;
  client?.send({ ...publish(9, "line/a", "1"), qos: 2 }, publish(10, "line/b", "2"));
  const delivery = await pull(source, signal).next();
  expect(brief(delivery.readings)).toEqual(["line/a=1", "line/b=2"]);
  expect(client?.packets.map(({ cmd }) => cmd)).toEqual(["connect", "subscribe"]);

  delivery.ack();

  await client?.received("pubcomp");
  expect(client?.packets.map(({ cmd }) => cmd)).toEqual(["connect", "subscribe", "pubrec", "puback", "pubcomp"]);
});

function publish(messageId: number, topic: string, payload: string): IPublishPacket {
  return { cmd: "publish", messageId, topic, payload, qos: 1, dup: false, retain: false };
}

function pubacks(client: ScriptedClient | undefined): number[] {
  return (client?.packets ?? []).flatMap((packet) => (packet.cmd === "puback" ? [packet.messageId ?? 0] : []));
}
