// Tags whose filters overlap without one covering the other: MQTT 5 brokers send a message once for each filter.
import { expect, test } from "vitest";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

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

/** Sends a message as the copy for the subscription that `client` has requested for `filter`. */
function sendCopy(client: ScriptedClient, topic: string, filter: string): void {
  const requests = client.packets.filter((packet) => packet.cmd === "subscribe");
  const request = requests.findLast(({ subscriptions }) => subscriptions.some((each) => each.topic === filter));
  const properties = request?.properties;
  expect(properties).toHaveProperty("subscriptionIdentifier");
  client.send({
    cmd: "publish",
    topic,
    payload: "1",
    qos: 0,
    dup: false,
    retain: false,
    ...(properties && { properties }),
  });
}

test("a copy for a new filter is read as soon as the broker has ended the one before", async () => {
  await using broker = await scriptedBroker((packet, client, connection) => {
    if (packet.cmd === "unsubscribe") sendCopy(client, "plant/a", "plant/+");
    politeAnswer(packet, client, { sessionPresent: connection > 0 });
  });
  using folder = temporaryFolder();
  const open = (...topics: string[]) => {
    const text = { options: { url: broker.url }, tags: topics.map((topic) => ({ topic })), stateDir: folder.path };
    return openMqttSource(text, testRuntime(), signal);
  };
  {
    await using _source = await open("plant/#", "+/b");
  }

  await using source = await open("plant/+", "+/b");

  expect(brief(await pull(source, signal).readings(1))).toEqual(["plant/a=1"]);
});

test("as long as the filters of a new session are not all granted, every copy is read", async () => {
  await using broker = await scriptedBroker((packet, client, connection) => {
    politeAnswer(packet, client);
    const isFirst = packet.cmd === "subscribe" && packet.subscriptions.some(({ topic }) => topic === "a/+/c");
    if (isFirst && connection > 0) sendCopy(client, "a/b/c", "a/+/c");
  });
  using folder = temporaryFolder();
  const text = { options: { url: broker.url }, tags, stateDir: folder.path };
  {
    await using _source = await openMqttSource(text, testRuntime(), signal);
  }

  await using source = await openMqttSource(text, testRuntime(), signal);

  const readings = await pull(source, signal).readings(3);
  expect(readings.map(({ tag }) => tag).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
});

test.each([
  { subscriptionIdentifiersAvailable: false },
  // One byte short of a SUBSCRIBE of `a/+/c` with an identifier.
  { maximumPacketSize: 17 },
])("a broker with %j is asked for no subscription identifiers, and the log names the filters", async (properties) => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: 0, sessionPresent: false, properties });
    else politeAnswer(packet, client);
  });
  const runtime = testRuntime();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  broker.connections[0]?.send({ cmd: "publish", topic: "a/x/c", payload: "1", qos: 0, dup: false, retain: false });

  expect(brief(await pull(source, signal).readings(1))).toEqual(["a/x/c=1"]);
  expect(await broker.connections[0]?.received("subscribe")).not.toHaveProperty("properties");
  expect(
    runtime.lines.find(({ message }) => message.startsWith("the broker accepts no subscription identifiers")),
  ).toMatchObject({ fields: { filters: ["a/+/c", "+/b/c"] } });
});
