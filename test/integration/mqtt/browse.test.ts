// Browsing listens for messages, and its output can be pasted into a configuration.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BrowsedNode } from "../../../src/core/commissioning.ts";
import { mqttDriver } from "../../../src/source/mqtt/driver.ts";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const messages = {
  "hall/env": '{"ts":1767225600,"t":21.5,"a b":{"c":[1,"x"]},"n":null}',
  "hall/lamp": "ON",
  "spBv1.0/G1/NDATA/E1": "x",
  "zzz/end": "1",
};

test("lists the values in every topic with a tag for each that reads it", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    politeAnswer(packet, client);
    if (packet.cmd !== "subscribe") return;
    for (const [topic, payload] of Object.entries(messages))
      client.send({ cmd: "publish", topic, payload, qos: 0, dup: false, retain: false });
    // The client answers packets in order: its PUBCOMP shows that it has received everything before.
    client.send({ cmd: "pubrel", messageId: 1 });
  });
  const abort = new AbortController();
  const target = { url: broker.url, username: "gw1", password: "gw1-password" };
  const listing = collect(mqttDriver.browse?.(target, testRuntime(), abort.signal) ?? noNodes());
  const client = await eventually(() => broker.connections[0]);
  const connect = await client.received("connect");
  await client.received("pubcomp");
  abort.abort();
  const nodes = await listing;

  expect(nodes.map(({ address, value, tag }) => [address, value, tag["value"], tag["time"], tag["input"]])).toEqual([
    ["hall/env", 21.5, "$.t", { at: "$.ts" }, "hall.env.t"],
    ["hall/env", 1, "$['a b'].c[0]", { at: "$.ts" }, "hall.env.a_b.c.0"],
    ["hall/env", "x", "$['a b'].c[1]", { at: "$.ts" }, "hall.env.a_b.c.1"],
    ["hall/lamp", "ON", undefined, undefined, "hall.lamp"],
    ["spBv1.0/#", undefined, undefined, undefined, "{group}.{node}.{device}.{metric}"],
    ["zzz/end", 1, undefined, undefined, "zzz.end"],
  ]);

  // The client listened for less than a second. Rates are computed over at least one second.
  expect(nodes.map(({ perSecond }) => perSecond)).toEqual([1, 1, 1, 1, undefined, 1]);
  expect(connect).toMatchObject({ username: "gw1", password: Buffer.from("gw1-password"), clean: true });
  expect(connect.clientId).toMatch(/^tagferry-browse-/);

  await using other = await openMqttBroker();
  const { signal } = new AbortController();
  const tags = nodes.slice(0, 4).map(({ tag: { input: _input, ...tag } }) => tag);
  await using source = await openMqttSource({ options: { url: other.url }, tags }, testRuntime(), signal);
  await other.publish("hall/env", messages["hall/env"]);
  await other.publish("hall/lamp", messages["hall/lamp"]);
  expect((await pull(source, signal).readings(4)).map(({ value }) => value)).toEqual([21.5, 1, "x", "ON"]);
});

async function collect(nodes: AsyncIterable<BrowsedNode>): Promise<BrowsedNode[]> {
  const all: BrowsedNode[] = [];
  for await (const node of nodes) all.push(node);
  return all;
}

async function* noNodes(): AsyncGenerator<BrowsedNode> {}

test("a source is browsed with its certificates and its password file", async () => {
  const fixture = (name: string) => join(import.meta.dirname, "../../fixtures/tls", name);
  const tls = { cert: readFileSync(fixture("broker.pem")), key: readFileSync(fixture("broker-key.pem")) };
  const credentials = { username: "gw1", password: "gw1-password" };
  await using broker = await openMqttBroker({ tls, credentials });
  await broker.publish("hall/t", "1", { retain: true });
  using folder = temporaryFolder();
  writeFileSync(folder.file("password"), "gw1-password\n");
  const { url } = broker;
  const text = { url, caFile: fixture("ca.pem"), username: "gw1", passwordFile: folder.file("password") };
  const options = mqttDriver.schema.parse(text);
  const stop = new AbortController();

  const listing = collect(mqttDriver.browse?.({ url, options }, testRuntime(), stop.signal) ?? noNodes());
  await eventually(() => broker.clients.find((client) => broker.subscriptions(client).includes("#")));
  await broker.publish("hall/last", "2");
  stop.abort();

  expect((await listing).map(({ address }) => address)).toContain("hall/last");
  await expect(
    collect(mqttDriver.browse?.({ url }, testRuntime(), new AbortController().signal) ?? noNodes()),
  ).rejects.toThrow("the issuer of its certificate is not trusted");
});

test("a broker that denies every subscription is distinguished from one without messages", async () => {
  await using broker = await openMqttBroker({ maySubscribe: () => false });
  const nodes = mqttDriver.browse?.({ url: broker.url }, testRuntime(), new AbortController().signal);

  await expect(nodes?.[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url} refused the subscription to all topics (#): unspecified error (128)`,
  });
});
