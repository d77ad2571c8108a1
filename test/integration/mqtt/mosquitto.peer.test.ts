// The MQTT source with mosquitto: MQTT 5 with user name and password, persistent sessions, restarts of the broker.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { MqttClient } from "mqtt";
import { expect, test } from "vitest";
import { isAgentError } from "../../../src/core/errors.ts";
import type { Source } from "../../../src/core/source.ts";
import { eventually } from "../../support/eventually.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { type MqttTap, openMqttTap } from "../../support/mqtt-tap.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();

test("a tag arrives over MQTT 5 with user name and password, with its value and the time in its payload", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const tags = [{ topic: "sensors/{room}/env", value: "$.t", time: { at: "$.ts", format: "unixMs" } }];
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);

  await publish(await broker.publisher(), "sensors/hall/env", '{"t":21.5,"ts":1767225600123}');

  expect(await pull(source, signal).readings(1)).toMatchObject([
    {
      tag: 0,
      captures: { room: "hall" },
      address: "sensors/hall/env",
      value: 21.5,
      time: 1_767_225_600_123_000,
      clock: "device",
      quality: "good",
    },
  ]);
  expect(source.details?.()).toMatchObject({ protocol: "MQTT 5", session: "new", subscriptions: 1 });
});

test("a wrong password is refused with the broker's reason, without the password", async () => {
  await using broker = await openMosquitto();
  const options = { url: broker.url, username: broker.username, password: "wrong-password" };

  const error: unknown = await openMqttSource({ options, tags: [{ topic: "a" }] }, testRuntime(), signal).catch(
    (caught: unknown) => caught,
  );

  expect(error).toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url} refused the connection as user gw1, client north-hall: not authorized (135)`,
  });
  expect(JSON.stringify(error)).not.toContain("wrong-password");
});

test("no message published while the agent was stopped is lost, nor one that it had not acknowledged", async () => {
  await using broker = await openMosquitto();
  using folder = temporaryFolder();
  const { url, username, password } = broker;
  const text = { options: { url, username, password }, tags: [{ topic: "line/+" }], stateDir: folder.path };
  const publisher = await broker.publisher();
  {
    await using source = await openMqttSource(text, testRuntime(), signal);
    for (let i = 0; i < 3_000; i++) void publish(publisher, "line/1", String(i));
    const puller = pull(source, signal);
    let seen = 0;
    while (seen < 1_000) {
      const delivery = await puller.next();
      seen += delivery.readings.length;
      if (seen < 500) delivery.ack();
    }
  }
  await publish(publisher, "line/1", "3000");

  await using source = await openMqttSource(text, testRuntime(), signal);
  const values = new Set<unknown>();
  const puller = pull(source, signal);
  while (!values.has(3_000)) for (const { value } of await puller.readings(1)) values.add(value);

  expect(source.details?.()).toMatchObject({ session: "resumed" });
  const missing = Array.from({ length: 2_500 }, (_, i) => i + 500).filter((i) => !values.has(i));
  expect(missing).toEqual([]);
});

test("a broker killed and restarted keeps the queued messages and the subscription", async () => {
  await using broker = await openMosquitto();
  using folder = temporaryFolder();
  const { url, username, password } = broker;
  const text = { options: { url, username, password }, tags: [{ topic: "line/+" }], stateDir: folder.path };
  const publisher = await broker.publisher();
  {
    await using source = await openMqttSource(text, testRuntime(), signal);
    await publish(publisher, "line/1", "1");
    const puller = pull(source, signal);
    expect(brief((await puller.next()).readings)).toEqual(["line/1=1"]);
    await broker.restart("SIGTERM");
    await expect(puller.next()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  }

  await using source = await openMqttSource(text, testRuntime(), signal);
  await publish(publisher, "line/1", "2");

  expect(brief(await pull(source, signal).readings(2))).toEqual(["line/1=1", "line/1=2"]);
});

test("a filter refused by the access list does not affect the others", async () => {
  await using broker = await openMosquitto({ acl: ["user gw1", "topic readwrite open/#"] });
  const { url, username, password } = broker;
  const tags = [{ topic: "open/a" }, { topic: "closed/a" }];
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);

  await publish(await broker.publisher(), "open/a", "1");

  expect(brief(await pull(source, signal).readings(1))).toContain("open/a=1");
});

test("a message above the maximum packet size is not sent by the broker, and one above maxPayload is counted", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const runtime = testRuntime();
  await using source = await openMqttSource(
    { options: { url, username, password }, tags: [{ topic: "a" }] },
    runtime,
    signal,
  );
  const publisher = await broker.publisher();

  for (const payload of ["x".repeat(17 * 2 ** 20), "y".repeat(2 * 2 ** 20), "1"])
    await publish(publisher, "a", payload);

  const readings = await pull(source, signal).readings(2);
  expect(readings).toMatchObject([
    { quality: "bad", reason: /of 2097152 bytes is larger than maxPayload/ },
    { value: 1 },
  ]);
  expect(runtime.metric("source_mqtt_messages_total")).toBe(2);
});

test("commits of 20 ms do not stall: a burst of 20,000 messages arrives completely", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const tags = [{ topic: "burst/{n}", value: "$.v" }];
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);
  const publisher = await broker.publisher();
  const count = 20_000;
  for (let i = 0; i < count; i++) void publish(publisher, `burst/${i % 1_000}`, `{"v":${i}}`);
  const values = new Set<unknown>();
  for await (const delivery of source.deliveries(signal)) {
    for (const { value } of delivery.readings) values.add(value);
    await new Promise((resolve) => setTimeout(resolve, 20));
    delivery.ack();
    if (values.size === count) break;
  }
  await eventually(() => broker.log.length > 0);
  expect(values.size).toBe(count);
});

test("for a minute, with commits of 20 ms, acknowledgements stay in order and the connection up", {
  timeout: 240_000,
}, async () => {
  await using broker = await openMosquitto({ config: ["max_inflight_messages 0"] });
  await using tap = await openMqttTap(broker.port);
  const { username, password } = broker;
  const options = { url: `mqtt://127.0.0.1:${tap.port}`, username, password, keepalive: "5s" };
  const tags = [{ topic: "plant/{line}/{machine}/temp", value: "$.v" }];
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);
  const total = 5_000 * 60;
  const load = { host: "127.0.0.1", port: broker.port, username, password, qos: 1, rate: 5_000, topics: 1_000, total };
  const publisher = join(import.meta.dirname, "../../bench/mqtt/publisher.ts");
  const publishing = spawn(process.execPath, [publisher, JSON.stringify(load)], { stdio: "inherit" });
  const ended = once(publishing, "exit");
  let next = 0;
  let inOrder = true;
  for await (const delivery of source.deliveries(signal)) {
    for (const { value } of delivery.readings) inOrder &&= value === next++;
    await new Promise((resolve) => setTimeout(resolve, 20));
    delivery.ack();
    if (next >= total) break;
  }
  await ended;
  await eventually(() => tap.acknowledged === total);

  expect({ inOrder, ...counted(tap) }).toEqual({ inOrder: true, outOfOrder: 0, connections: 1 });
  expect(broker.log).not.toMatch(/exceeded timeout|north-hall disconnected/);
});

function counted({ outOfOrder, connections }: MqttTap) {
  return { outOfOrder, connections };
}

const fixture = (name: string) => join(import.meta.dirname, "../../fixtures/tls", name);
const caFile = fixture("ca.pem");
const tls = [`certfile ${fixture("broker.pem")}`, `keyfile ${fixture("broker-key.pem")}`];

test.each([
  { protocol: "mqtts", config: tls, options: { caFile } },
  { protocol: "ws", config: [], options: {} },
  { protocol: "wss", config: tls, options: { caFile } },
  { protocol: "mqtt", config: [], options: { protocolVersion: 4 } },
  { protocol: "mqtt", config: [], options: { protocolVersion: 3 } },
] as const)("a message arrives over $protocol with $options", async ({ protocol, config, options }) => {
  await using broker = await openMosquitto({ protocol, config });
  const { url, username, password } = broker;
  const text = { options: { url, username, password, ...options }, tags: [{ topic: "a/{x}" }] };
  await using source = await openMqttSource(text, testRuntime(), signal);

  await publish(await broker.publisher(), "a/1", "7");

  expect(brief(await pull(source, signal).readings(1))).toEqual(["a/1=7"]);
});

test.each(["mqtts", "wss"] as const)(
  "mutual TLS over %s: a client with a certificate is accepted, one without is refused with the reason",
  async (protocol) => {
    await using broker = await openMosquitto({
      protocol,
      config: [...tls, `cafile ${caFile}`, "require_certificate true"],
    });
    const { url, username, password } = broker;
    const tags = [{ topic: "a" }];
    const options = { url, username, password, caFile };

    await expect(openMqttSource({ options, tags }, testRuntime(), signal)).rejects.toMatchObject({
      name: "AgentError",
    });
    const certificate = { certFile: fixture("client.pem"), keyFile: fixture("client-key.pem") };
    await using _source = await openMqttSource(
      { options: { ...options, ...certificate }, tags },
      testRuntime(),
      signal,
    );
  },
);

test("a live message with the retain flag is stored, a retained one from before is not", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const publisher = await broker.publisher();
  await publisher.publishAsync("a", "1", { qos: 1, retain: true });
  const text = { options: { url, username, password }, tags: [{ topic: "a" }] };
  await using source = await openMqttSource(text, testRuntime(), signal);

  await publisher.publishAsync("a", "2", { qos: 1, retain: true });

  expect(brief(await pull(source, signal).readings(1))).toEqual(["a=2"]);
});

test("two agents in a shared subscription get each message once between them", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const open = (clientId: string) =>
    openMqttSource(
      { options: { url, username, password, clientId }, tags: [{ topic: "$share/agents/line/{n}" }] },
      testRuntime(),
      signal,
    );
  await using one = await open("one");
  await using two = await open("two");
  const publisher = await broker.publisher();
  for (let i = 0; i < 200; i++) await publish(publisher, `line/${i}`, String(i));
  const seen: unknown[] = [];
  const abort = new AbortController();
  const collect = async (source: Source) => {
    for await (const delivery of source.deliveries(abort.signal)) {
      for (const { value } of delivery.readings) seen.push(value);
      delivery.ack();
    }
  };
  const collecting = Promise.all([collect(one), collect(two)]);
  await eventually(() => seen.length >= 200);
  abort.abort();
  await collecting;

  expect(seen.map(Number).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
});

test("with a broker restarted twice under load every message that it accepted arrives", async () => {
  await using broker = await openMosquitto();
  using folder = temporaryFolder();
  const { url, username, password } = broker;
  const text = { options: { url, username, password }, tags: [{ topic: "line/+" }], stateDir: folder.path };
  const publisher = await broker.publisher();
  const seen = new Set<unknown>();
  const stop = new AbortController();
  const subscribed = Promise.withResolvers<void>();
  const reading = (async () => {
    while (!stop.signal.aborted) {
      try {
        await using source = await openMqttSource(text, testRuntime(), stop.signal);
        subscribed.resolve();
        for await (const delivery of source.deliveries(stop.signal)) {
          for (const { value } of delivery.readings) seen.add(value);
          await new Promise((resolve) => setTimeout(resolve, 5));
          delivery.ack();
        }
      } catch (error) {
        if (!stop.signal.aborted && !isAgentError(error)) throw error;
      }
    }
  })();
  await subscribed.promise;
  const taken = new Set<number>();
  const publishing: Promise<unknown>[] = [];
  for (let i = 0; i < 20_000; i++) {
    // Messages that the publisher loses with its own connection do not count.
    const done = publish(publisher, `line/${i % 50}`, String(i)).then(
      () => taken.add(i),
      () => {},
    );
    publishing.push(done);
    if (i % 200 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    if (i === 6_000 || i === 13_000) await broker.restart("SIGTERM");
  }
  await Promise.all(publishing);
  expect(taken.size).toBeGreaterThan(10_000);
  const missing = () => [...taken].filter((value) => !seen.has(value));
  await eventually(() => missing().length === 0).catch(() => {});
  expect(missing()).toEqual([]);
  stop.abort();
  await reading;
});

test("a second client with the same identifier takes the session over, and the hint of the first names the identifier", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const text = { options: { url, username, password, clientId: "press-4" }, tags: [{ topic: "line/+" }] };
  await using first = await openMqttSource(text, testRuntime(), signal);
  const said = expect(pull(first, signal).next()).rejects.toMatchObject({
    hint: expect.stringMatching(
      /another client uses client identifier press-4|find the other client that uses press-4/,
    ),
  });
  await using _second = await openMqttSource(text, testRuntime(), signal);

  await said;
});

test("mosquitto keeps a client that reads nothing for several keep-alive intervals, and loses none of its messages", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  const options = { url, username, password, keepalive: "1s", session: { receiveMaximum: 65_535 } };
  await using source = await openMqttSource({ options, tags: [{ topic: "line/+" }] }, testRuntime(), signal);
  const publisher = await broker.publisher();
  const count = 30_000;
  await Promise.all(Array.from({ length: count }, (_, i) => publish(publisher, "line/1", String(i))));
  const begin = performance.now();
  await eventually(() => performance.now() - begin > 4_000);

  const readings = await pull(source, signal).readings(count);

  expect(readings.map(({ value }) => value)).toEqual(Array.from({ length: count }, (_, i) => i));
  expect(broker.log).not.toMatch(/exceeded timeout|north-hall disconnected/);
});

function publish(publisher: MqttClient, topic: string, payload: string): Promise<unknown> {
  return publisher.publishAsync(topic, payload, { qos: 1 });
}
