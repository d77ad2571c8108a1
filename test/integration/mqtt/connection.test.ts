// Connecting: refusals name their reason, both sides agree on a version, and the loss of a connection is reported.
import { expect, test } from "vitest";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();
const tags = [{ topic: "a" }];

test("CONNECT is of MQTT 5 with user, password, a stable client identifier and a session that outlives the connection", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const options = { url: broker.url, username: "gw1", password: "gw1-password", keepalive: "30s" };
  await using _source = await openMqttSource({ options, tags }, testRuntime(), signal);

  const connect = await broker.connections[0]?.received("connect");

  expect(connect).toMatchObject({
    protocolVersion: 5,
    clientId: "north-hall",
    username: "gw1",
    password: Buffer.from("gw1-password"),
    clean: false,
    keepalive: 30,
    properties: { sessionExpiryInterval: 86_400, receiveMaximum: 2_000, maximumPacketSize: 16 * 2 ** 20 },
  });
});

test("a session that is not persistent begins clean and ends with the connection", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const options = { url: broker.url, session: { persistent: false }, clientId: "probe" };
  await using _source = await openMqttSource({ options, tags }, testRuntime(), signal);

  const connect = await broker.connections[0]?.received("connect");

  expect(connect).toMatchObject({ clientId: "probe", clean: true, properties: { sessionExpiryInterval: 0 } });
});

test("a wrong password is refused with broker, user and reason, and without the password", async () => {
  await using broker = await openMqttBroker({ credentials: { username: "gw1", password: "right" } });
  const options = { url: broker.url, username: "gw1", password: "wrong-one" };
  const runtime = testRuntime();

  const opening = openMqttSource({ options, tags }, runtime, signal);

  await expect(opening).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url} refused the connection as user gw1, client north-hall: bad user name or password (4)`,
  });
  expect(JSON.stringify(runtime.lines)).not.toContain("wrong-one");
});

test.each([
  { reason: 134, code: "SOURCE_REFUSED" },
  { reason: 135, code: "SOURCE_REFUSED" },
  { reason: 136, code: "SOURCE_UNREACHABLE" },
  { reason: 137, code: "SOURCE_UNREACHABLE" },
  { reason: 149, code: "SOURCE_PROTOCOL" },
])("CONNACK with reason $reason is $code", async ({ reason, code }) => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: reason, sessionPresent: false });
  });

  await expect(openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code,
  });
  expect(broker.connections).toHaveLength(1);
});

test("a broker that refuses MQTT 5 is connected with MQTT 3.1.1", async () => {
  await using broker = await openMqttBroker();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  await broker.publish("a", "7");

  expect(source.details?.()).toMatchObject({ protocol: "MQTT 3.1.1" });
  expect(await pull(source, signal).readings(1)).toMatchObject([{ value: 7 }]);
});

test("a broker that closes the connection at newer versions is connected with MQTT 3.1", async () => {
  await using broker = await scriptedBroker(
    (packet, client) => {
      if (packet.cmd === "connect" && packet.protocolVersion !== 3) client.socket.destroy();
      else politeAnswer(packet, client);
    },
    { version: 3 },
  );

  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  expect(source.details?.()).toMatchObject({ protocol: "MQTT 3.1" });
  expect(broker.connections).toHaveLength(3);
});

test("a broker known to support MQTT 5 that closes the connection is not downgraded", async () => {
  let hangUp = false;
  await using broker = await scriptedBroker((packet, client) => {
    if (hangUp) client.socket.destroy();
    else politeAnswer(packet, client);
  });
  using folder = temporaryFolder();
  const text = { options: { url: broker.url }, tags, stateDir: folder.path };
  {
    await using _source = await openMqttSource(text, testRuntime(), signal);
  }
  hangUp = true;

  await expect(openMqttSource(text, testRuntime(), signal)).rejects.toMatchObject({ code: "SOURCE_PROTOCOL" });

  expect(broker.connections).toHaveLength(2);
});

test("a broker that closes MQTT 5 connections five times in a row was replaced: older versions are tried", async () => {
  let replaced = false;
  await using broker = await scriptedBroker((packet, client) => {
    if (!replaced) politeAnswer(packet, client);
    else if (packet.cmd === "connect" && packet.protocolVersion === 5) client.socket.destroy();
    else if (packet.cmd === "connect") client.socket.write(Buffer.from([0x20, 2, 0, 0]));
    else if (packet.cmd === "subscribe") {
      const id = packet.messageId ?? 0;
      client.socket.write(Buffer.from([0x90, 3, id >> 8, id & 0xff, 1]));
    }
  });
  using folder = temporaryFolder();
  const text = { options: { url: broker.url }, tags, stateDir: folder.path };
  {
    await using _source = await openMqttSource(text, testRuntime(), signal);
  }
  replaced = true;
  for (let times = 0; times < 5; times++)
    await expect(openMqttSource(text, testRuntime(), signal)).rejects.toMatchObject({ code: "SOURCE_PROTOCOL" });

  await using source = await openMqttSource(text, testRuntime(), signal);

  expect(source.details?.()).toMatchObject({ protocol: "MQTT 3.1.1" });
  const versions = await Promise.all(broker.connections.map((each) => each.received("connect")));
  expect(versions.map(({ protocolVersion }) => protocolVersion)).toEqual([5, 5, 5, 5, 5, 5, 5, 4]);
});

test("a closed port is unreachable, with address and remedy", async () => {
  const broker = await scriptedBroker(() => {});
  await broker[Symbol.asyncDispose]();

  await expect(openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: `${broker.url}: connection refused: nothing listens on this port`,
  });
});

test("a server that is not a broker is recognised", async () => {
  await using broker = await scriptedBroker((_packet, client) => {
    client.socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
  });

  await expect(openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_PROTOCOL",
  });
});

test("a broker that never answers is abandoned after connectTimeout", async () => {
  await using broker = await scriptedBroker(() => {});
  const options = { url: broker.url, connectTimeout: "100ms" };

  await expect(openMqttSource({ options, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: `${broker.url}: no answer within connectTimeout`,
  });
});

test("connecting ends at once when it is aborted", async () => {
  await using broker = await scriptedBroker(() => {});
  const abort = new AbortController();
  const opening = openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), abort.signal);
  const reason = new Error("enough");
  abort.abort(reason);

  await expect(opening).rejects.toBe(reason);
});

test("deliveries end without an error when aborted, and disposing sends DISCONNECT", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const abort = new AbortController();
  {
    await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
    const iterator = source.deliveries(abort.signal)[Symbol.asyncIterator]();
    const next = iterator.next();
    abort.abort(new Error("stop"));
    expect(await next).toEqual({ value: undefined, done: true });
  }
  await broker.connections[0]?.received("disconnect");
});

test("a session takeover by another client with the same identifier is reported", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    politeAnswer(packet, client);
    if (packet.cmd !== "subscribe") return;
    client.send({ cmd: "disconnect", reasonCode: 142 });
    client.socket.end();
  });
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  await expect(pull(source, signal).next()).rejects.toMatchObject({
    code: "SOURCE_TAKEN_OVER",
    message: `${broker.url} ended the connection of client north-hall: another client took over the session with the same client identifier (142)`,
    hint: expect.stringMatching(/find the other client that uses north-hall/),
  });
});

test("messages of a resumed session directly after CONNACK are not missed", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "connect") politeAnswer(packet, client);
    else
      client.send(
        { cmd: "connack", reasonCode: 0, sessionPresent: true },
        { cmd: "publish", messageId: 1, topic: "a", payload: "1", qos: 1, dup: true, retain: false },
      );
  });
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  expect(await pull(source, signal).readings(1)).toMatchObject([{ value: 1 }]);
});
