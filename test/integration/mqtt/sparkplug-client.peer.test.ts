// Sparkplug B with Cirrus Link's edge node in JavaScript (sparkplug-client, EPL), over mosquitto.
import { expect, test } from "vitest";
import type { Reading } from "../../../src/core/source.ts";
import { eventually } from "../../support/eventually.ts";
import { type Mosquitto, openMosquitto } from "../../support/mosquitto.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { npmPackage } from "../../support/npm-package.ts";
import { testRuntime } from "../../support/runtime.ts";

const { signal } = new AbortController();
const tags = [{ topic: "spBv1.0/#", format: "sparkplugB" }];
const at = Date.UTC(2026, 0, 1);

/** The part of sparkplug-client that this test uses. */
interface EdgeNode {
  on(event: "birth", listener: () => void): void;
  on(event: "ncmd", listener: (payload: Payload) => void): void;
  publishNodeBirth(payload: Payload): void;
  publishNodeData(payload: Payload, options?: object): void;
  publishDeviceBirth(device: string, payload: Payload): void;
  publishDeviceData(device: string, payload: Payload, options?: object): void;
  publishDeviceDeath(device: string, payload: Payload): void;
  stop(): void;
}
interface Payload {
  readonly timestamp: number;
  readonly metrics: readonly { readonly name: string; readonly type: string; readonly value: unknown }[];
}

test("births, data, compressed data and deaths of node and device are decoded, negative values included", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);
  using node = await edgeNode(broker);
  const puller = pull(source, signal);

  expect(brief(await puller.readings(6))).toEqual([
    "/int16=-300",
    "/int32=-70000",
    `/uint64=${2 ** 40}`,
    "/double=-1.5e+300",
    "/bool=true",
    "D1/Line 1/Speed=100",
  ]);
  node.client.publishNodeData(metrics(["int32", "Int32", -1]), { compress: true, algorithm: "GZIP" });
  node.client.publishDeviceData("D1", metrics(["Line 1/Speed", "Int32", -99]), { compress: true });
  expect(brief(await puller.readings(2))).toEqual(["/int32=-1", "D1/Line 1/Speed=-99"]);
  node.client.publishDeviceDeath("D1", metrics());
  expect(brief(await puller.readings(1))).toEqual(["D1/Line 1/Speed=device D1 is offline"]);
});

test("a node that was online first answers the request for its birth", async () => {
  await using broker = await openMosquitto();
  using node = await edgeNode(broker);
  const { url, username, password } = broker;
  await eventually(() => node.births > 0);
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);
  const puller = pull(source, signal);
  node.client.publishNodeData({ timestamp: at, metrics: [{ name: "", type: "Int32", value: 1 }] });

  await eventually(() => node.births > 1);
  expect((await puller.readings(6)).at(-1)?.captures["metric"]).toBe("Line 1/Speed");
});

function metrics(...all: readonly (readonly [name: string, type: string, value: unknown])[]): Payload {
  return { timestamp: at, metrics: all.map(([name, type, value]) => ({ name, type, value })) };
}

function brief(readings: readonly Reading[]): string[] {
  return readings.map(
    ({ captures, value, reason }) => `${captures["device"]}/${captures["metric"]}=${String(value ?? reason)}`,
  );
}

async function edgeNode({ port, username, password }: Mosquitto) {
  const library = await npmPackage("sparkplug-client", "3.2.4");
  const { newClient } = library as { newClient: (options: object) => EdgeNode }; // the signature in its documentation
  const client = newClient({
    serverUrl: `mqtt://127.0.0.1:${port}`,
    username,
    password,
    groupId: "G1",
    edgeNode: "E1",
    clientId: "edge-node",
    version: "spBv1.0",
  });
  let births = 0;
  const beBorn = () => {
    births++;
    client.publishNodeBirth(
      metrics(
        ["int16", "Int16", -300],
        ["int32", "Int32", -70_000],
        ["uint64", "UInt64", 2 ** 40],
        ["double", "Double", -1.5e300],
        ["bool", "Boolean", true],
      ),
    );
    client.publishDeviceBirth("D1", metrics(["Line 1/Speed", "Int32", 100]));
  };
  client.on("birth", beBorn);
  client.on("ncmd", (payload) => {
    if (payload.metrics.some(({ name, value }) => name === "Node Control/Rebirth" && value === true)) beBorn();
  });
  return {
    client,
    get births() {
      return births;
    },
    [Symbol.dispose]: () => client.stop(),
  };
}
