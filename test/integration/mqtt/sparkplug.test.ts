// Sparkplug B through a broker: the rebirth request is the only message that the source publishes.
import { connectAsync } from "mqtt";
import { expect, test } from "vitest";
import { decodeSparkplug } from "../../../src/source/mqtt/sparkplug/payload.ts";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { sparkplugPayload } from "../../support/sparkplug.ts";

const { signal } = new AbortController();
const tags = [{ topic: "spBv1.0/#", format: "sparkplugB" }];
const birth = sparkplugPayload({ seq: 0, metrics: [{ name: "Speed", alias: 1, datatype: 3, int: 4_294_967_291 }] });
const data = (int: number) => sparkplugPayload({ seq: 1, metrics: [{ alias: 1, int }] });

test("an edge node that was online first is asked for its birth and decoded from then on", async () => {
  await using broker = await openMqttBroker();
  const node = await connectAsync(broker.url);
  const commands: string[] = [];
  node.on("message", (topic, payload) => {
    const [metric] = decodeSparkplug(payload, 1_000).metrics;
    commands.push(`${topic} ${metric?.name}=${metric?.value === true}`);
    node.publish("spBv1.0/G1/NBIRTH/E1", birth);
  });
  await node.subscribeAsync("spBv1.0/G1/NCMD/E1");
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
  await broker.publish("spBv1.0/G1/NDATA/E1", data(7), { qos: 0 });
  const puller = pull(source, signal);
  const [first] = await puller.readings(1);
  await broker.publish("spBv1.0/G1/NDATA/E1", data(8), { qos: 0 });
  const [second] = await puller.readings(1);
  node.end(true);

  expect(commands).toEqual(["spBv1.0/G1/NCMD/E1 Node Control/Rebirth=true"]);
  expect(first).toMatchObject({ value: -5, captures: { group: "G1", node: "E1", device: "", metric: "Speed" } });
  expect(second).toMatchObject({ value: 8 });
});

test("tags that differ in their other options share one count of messages", async () => {
  await using broker = await openMqttBroker();
  const runtime = testRuntime();
  const both = [...tags, { ...tags[0], decimal: ",", compression: "gzip" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags: both }, runtime, signal);
  const metrics = [{ name: "m", alias: 2, datatype: 10, double: 5 }];
  await broker.publish("spBv1.0/G1/NBIRTH/E1", birth, { qos: 0 });
  await broker.publish("spBv1.0/G1/DBIRTH/E1/D1", sparkplugPayload({ seq: 1, metrics }), { qos: 0 });

  const readings = await pull(source, signal).readings(4);
  expect(readings.map(({ tag, value }) => [tag, value])).toEqual([
    [0, -5],
    [1, -5],
    [0, 5],
    [1, 5],
  ]);
  expect(runtime.metric("source_mqtt_rebirth_requests_total")).toBe(0);
});

test("with requestRebirth off nothing is ever published", async () => {
  await using broker = await openMqttBroker();
  const node = await connectAsync(broker.url);
  let commands = 0;
  node.on("message", () => commands++);
  await node.subscribeAsync("spBv1.0/+/NCMD/#");
  const runtime = testRuntime();
  const options = { url: broker.url, requestRebirth: false };
  await using source = await openMqttSource({ options, tags }, runtime, signal);
  await broker.publish("spBv1.0/G1/NDATA/E1", data(7), { qos: 0 });
  await eventually(() => runtime.metric("source_mqtt_unknown_metric_values_total") === 1);
  expect(source.details?.()).toMatchObject({ sparkplugNodes: 1, waitingForBirth: 1 });
  await broker.publish("spBv1.0/G1/NBIRTH/E1", birth, { qos: 0 });

  expect(await pull(source, signal).readings(1)).toMatchObject([{ value: -5 }]);
  expect(commands).toBe(0);
  node.end(true);
});
