// A simulated hall: an MQTT broker (aedes) with login and sessions, and a client that publishes JSON with QoS 1.
import { createServer } from "node:net";
import type { Runtime } from "../core/runtime.ts";
import { orAbort } from "../lib/flow/abort.ts";
import { repeat, waitUntil } from "../lib/flow/repeat.ts";
import { listen } from "../lib/network/listen.ts";
import { type DeviceOptions, inputId, type SimulatedDevice, stopWait } from "./device.ts";

export const mqttLogin = { username: "gateway", password: "demo" };
const publisherId = "simulated-hall";

/**
 * Publishes after the agent's subscription, since a broker keeps no earlier messages. A value counts as delivered when
 * the broker has acknowledged it to the publisher.
 */
export async function openMqttDevice(
  { tags, everyMs, record }: DeviceOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<SimulatedDevice> {
  const [{ Aedes }, { connectAsync }] = await Promise.all([import("aedes"), import("mqtt")]);
  await using opening = new AsyncDisposableStack();

  const broker = new Aedes({
    authenticate(_client, username, password, done) {
      done(null, username === mqttLogin.username && password?.toString() === mqttLogin.password);
    },
  });
  await orAbort(broker.listen(), signal);
  const server = createServer((socket) => {
    broker.handle(socket);
  });
  const host = "127.0.0.1";
  const port = await orAbort(listen(server, { host, port: 0 }, "simulated broker"), signal);
  opening.defer(async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await new Promise<void>((resolve) => broker.close(() => resolve()));
    await closed;
  });
  const url = `mqtt://${host}:${port}`;

  // Messages that the agent has not acknowledged, by topic and payload.
  const unacknowledged = new Set<string>();
  const subscribed = Promise.withResolvers<void>();
  broker.on("subscribe", (_subscriptions, client) => {
    if (client.id !== publisherId) subscribed.resolve();
  });
  broker.on("ack", (packet) => {
    if (packet !== undefined && "topic" in packet)
      unacknowledged.delete(`${packet.topic} ${packet.payload.toString()}`);
  });

  // Not as a URL: mqtt.js would use `url.parse`, for which Node prints a warning.
  const place = { protocol: "mqtt", host, port } as const;
  const publisher = await orAbort(connectAsync({ ...place, ...mqttLogin, clientId: publisherId }), signal);
  // It reconnects automatically. Without a listener, an error would end the process.
  publisher.on("error", (error) => runtime.log.warn({ err: error }, "simulated hall lost its broker"));
  opening.defer(() => publisher.endAsync(true));

  const rooms = Array.from({ length: Math.ceil(tags / 2) }, (_, i) => `room${i + 1}`);
  const publish = async (room: string, n: number) => {
    // Quarters and integers are exact in binary, so the comparison can be exact.
    const climate = { ts: Math.floor(runtime.clock.now() / 1_000), temp: 15 + n * 0.25, co2: 400 + n };
    const topic = `demo/${room}/climate`;
    const payload = JSON.stringify(climate);
    unacknowledged.add(`${topic} ${payload}`);
    await publisher.publishAsync(topic, payload, { qos: 1 });
    record.add(inputId(`demo.${room}.temp`), climate.temp);
    record.add(inputId(`demo.${room}.co2`), climate.co2);
  };
  let n = 0;
  const publishAll = async (stopping: AbortSignal) => {
    await orAbort(subscribed.promise, stopping);
    await Promise.all(rooms.map((room) => publish(room, n)));
    n++;
  };
  const work = opening.use(
    repeat(publishAll, { everyMs, first: "now", failure: "simulated hall stopped publishing" }, runtime),
  );

  const owned = opening.move();
  return {
    url,
    inputs: rooms.flatMap((room) => [inputId(`demo.${room}.temp`), inputId(`demo.${room}.co2`)]),
    configuration: { source: source(url) },
    async stop(stopSignal) {
      await orAbort(Promise.resolve(work[Symbol.asyncDispose]()), stopSignal);
      await waitUntil(() => unacknowledged.size === 0, stopWait, runtime.clock, stopSignal);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function source(url: string): string {
  return `  hall:
    type: mqtt
    url: ${url}
    username: ${mqttLogin.username}
    password: "\${HALL_PASSWORD:-${mqttLogin.password}}"
    tags:
      - { input: "demo.{room}.temp", topic: "demo/{room}/climate", value: $.temp, time: { at: $.ts, format: unixMs }, signal: { engUnit: °C } }
      - { input: "demo.{room}.co2", topic: "demo/{room}/climate", value: $.co2, time: { at: $.ts, format: unixMs }, signal: { engUnit: ppm } }
`;
}
