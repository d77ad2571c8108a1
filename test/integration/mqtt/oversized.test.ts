// Messages larger than `maxPayload`, from brokers that send them nevertheless: MQTT 3.1.1 cannot announce a limit.
import type { IPublishPacket } from "mqtt-packet";
import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";
import { openWebSocketBridge } from "../../support/web-socket-bridge.ts";

const { signal } = new AbortController();
const tags = [{ topic: "line/{n}" }];
const big = "x".repeat(20_000);
const optionsOf = (url: string, version: 4 | 5) => ({ url, protocolVersion: version, maxPayload: "1KiB" });

test.each([4, 5] as const)(
  "version %i: a message that is too large is a bad reading, acknowledged in its turn, counted and named with the remedy",
  async (version) => {
    await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client), { version });
    const runtime = testRuntime();
    await using source = await openMqttSource({ options: optionsOf(broker.url, version), tags }, runtime, signal);
    const [client] = broker.connections;
    const puller = pull(source, signal);
    client?.send(
      publish(1, 1, "line/a", "1"),
      publish(2, 1, "line/big", big),
      publish(3, 2, "line/b", "2"),
      publish(4, 2, "line/big", big),
      { ...publish(0, 0, "line/big", big), retain: true },
      publish(5, 1, "not/wanted", big),
      publish(6, 1, "line/c", "3"),
    );

    const readings = await puller.readings(6);

    const reason = "payload of 20000 bytes is larger than maxPayload, 1024 bytes";
    expect(brief(readings)).toEqual([
      "line/a=1",
      `line/big=${reason}`,
      "line/b=2",
      `line/big=${reason}`,
      `line/big=${reason}`,
      "line/c=3",
    ]);
    await eventually(() => acknowledged(client).length === 6);
    expect(acknowledged(client)).toEqual(["puback 1", "puback 2", "pubrec 3", "pubrec 4", "puback 5", "puback 6"]);
    expect(runtime.metric("source_mqtt_oversized_messages_total")).toBe(4);
    expect(runtime.metric("source_mqtt_unmatched_messages_total")).toBe(1);
    expect(source.details?.()["lastOversized"]).toBe(
      "not/wanted: 20000 bytes; maxPayload is 1024: raise it, or narrow the topic of the tag",
    );
    const skips = runtime.lines.filter(({ message }) => message.includes("maxPayload"));
    const fields = { source: "hall", topic: "line/big", bytes: 20_000, maxPayload: 1_024 };
    expect(skips).toMatchObject([{ level: "warn", fields }]);

    client?.send({ cmd: "pubrel", messageId: 3 }, { cmd: "pubrel", messageId: 4 });
    await eventually(() => client?.packets.filter(({ cmd }) => cmd === "pubcomp").length === 2);
  },
);

test("no message is acknowledged before its end has arrived and earlier readings are on disk", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client), { version: 4 });
  await using source = await openMqttSource({ options: optionsOf(broker.url, 4), tags }, testRuntime(), signal);
  const [client] = broker.connections;
  const puller = pull(source, signal);
  client?.send(publish(1, 1, "line/a", "1"));
  const first = await puller.next();

  client?.send(publish(2, 1, "line/big", big), publish(3, 1, "line/b", "2"));
  const second = await puller.next();
  second.ack();
  client?.send({ cmd: "pingresp" });

  expect(acknowledged(client)).toEqual([]);
  first.ack();
  await eventually(() => acknowledged(client).length === 3);
  expect(acknowledged(client)).toEqual(["puback 1", "puback 2", "puback 3"]);
});

test("a connection lost within such a message ends without a crash, and the next one skips the message", async () => {
  const { generate } = await import("mqtt-packet");
  const whole = generate(publish(7, 1, "line/big", big));
  await using broker = await scriptedBroker(
    (packet, client, connection) => {
      politeAnswer(packet, client);
      if (packet.cmd !== "subscribe") return;
      if (connection === 0) client.socket.end(whole.subarray(0, 9_000));
      else client.socket.write(whole);
    },
    { version: 4 },
  );
  const text = { options: optionsOf(broker.url, 4), tags };
  const runtime = testRuntime();
  await using first = await openMqttSource(text, runtime, signal);
  await expect(pull(first, signal).next()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  expect(runtime.metric("source_mqtt_oversized_messages_total")).toBe(0);

  await using second = await openMqttSource(text, runtime, signal);
  await pull(second, signal).readings(1);

  await eventually(() => acknowledged(broker.connections[1]).length === 1);
  expect(runtime.metric("source_mqtt_oversized_messages_total")).toBe(1);
});

test("a packet in one WebSocket message is skipped while it arrives as well", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client), { version: 4 });
  await using bridge = await openWebSocketBridge(broker);
  const runtime = testRuntime();
  const text = { options: optionsOf(bridge.url, 4), tags };
  await using source = await openMqttSource(text, runtime, signal);
  const [client] = broker.connections;

  // Larger than the limit of the WebSocket library. In a single frame it would close the connection.
  const huge = "x".repeat(5_000_000);
  client?.send(publish(1, 1, "line/big", huge), publish(2, 1, "line/a", "1"));

  expect(brief(await pull(source, signal).readings(2))).toEqual([
    "line/big=payload of 5000000 bytes is larger than maxPayload, 1024 bytes",
    "line/a=1",
  ]);
  await eventually(() => acknowledged(client).length === 2);
  expect(bridge.largestMessage).toBeGreaterThan(5_000_000);
});

test.each([
  ["a SUBACK of 200 MB", [0x90, 0x80, 0x80, 0x80, 0x64, 0, 1], /packet of type 9 with 209715200 bytes/],
  ["a length of five bytes", [0x30, 0x80, 0x80, 0x80, 0x80, 1], /length has more than four bytes/],
  ["a topic longer than its message", [0x30, 0x80, 0x80, 0x01, 0xff, 0xff], /longer than the message itself/],
  ["a small packet that cannot be parsed", [0x3e, 2, 0, 0], /QoS/],
])("%s ends the connection with a reason that names it", async (_, bytes, reason) => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client), { version: 4 });
  const text = { options: { ...optionsOf(broker.url, 4), maxPayload: "10KiB" }, tags };
  await using source = await openMqttSource(text, testRuntime(), signal);
  broker.connections[0]?.socket.write(Buffer.from(bytes));
  await expect(pull(source, signal).next()).rejects.toMatchObject({ code: "SOURCE_PROTOCOL", message: reason });
});

function publish(messageId: number, qos: 0 | 1 | 2, topic: string, payload: string): IPublishPacket {
  return { cmd: "publish", ...(qos > 0 && { messageId }), qos, topic, payload, dup: false, retain: false };
}

function acknowledged(client: ScriptedClient | undefined): string[] {
  return (client?.packets ?? []).flatMap((packet) =>
    packet.cmd === "puback" || packet.cmd === "pubrec" ? [`${packet.cmd} ${packet.messageId}`] : [],
  );
}
