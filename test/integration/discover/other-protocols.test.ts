// Tags of a broker and of a Modbus device are found and written, as the page does it.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Source } from "../../../src/core/source.ts";
import { discoverWorld } from "../../support/discover-world.ts";
import { eventually } from "../../support/eventually.ts";
import { modbusDevice } from "../../support/modbus-device.ts";
import { allRead, openModbusSource, readUntil } from "../../support/modbus-source.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { testRuntime } from "../../support/runtime.ts";

interface Node {
  readonly key: string;
  readonly value?: unknown;
  readonly [member: string]: unknown;
}

const chosen = ({ key: _key, branch: _branch, type: _type, perSecond: _rate, ...node }: Node) => node;

test("values of a broker are followed, and its topics become tags", async () => {
  await using broker = await openMqttBroker();
  await using world = await discoverWorld();
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const found = await eventually(async () => {
    await broker.publish("hall/room1/temp", "21.5");
    const { body } = await world.ask("list", { look });
    return body.nodes.find((node: Node) => node["address"] === "hall/room1/temp");
  });
  expect(found.value).toBe(21.5);
  await eventually(async () => {
    await broker.publish("hall/room1/temp", "22.5");
    const { body } = await world.ask("values", { look, keys: [found.key] });
    return body.values[found.key] === 22.5;
  });
  const wish = { look, name: "hall", nodes: [chosen(found)] };
  const { body } = await world.ask("propose", wish);
  expect(body.errors).toEqual([]);
  expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(200);
  expect(readFileSync(body.file, "utf8")).toContain("- { input: hall.room1.temp, topic: hall/room1/temp }");
});

test("tags that are not written as a list are left as they are, and the YAML can be copied", async () => {
  await using broker = await openMqttBroker();
  await using world = await discoverWorld({
    configuration: `templates: { t: &all [{ input: hall.a, topic: hall/a }] }
sources: { hall: { type: mqtt, url: "${broker.url}", tags: *all } }
`,
  });
  const { look } = (await world.ask("open", { source: "hall" })).body;
  const node = { address: "hall/b", name: "b", depth: 1, path: ["hall", "b"], value: 1, tag: { topic: "hall/b" } };
  const wish = { look, nodes: [node] };
  const { body } = await world.ask("propose", wish);
  expect(body).toMatchObject({ difference: "", yaml: expect.stringContaining("topic: hall/b") });
  expect(body.errors).toEqual([expect.stringMatching(/^sources\.hall\.tags is not a list in this file: .* copied$/)]);
  const { status } = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect([status, readFileSync(world.file, "utf8").includes("hall/b")]).toEqual([422, false]);
});

test("registers of a Modbus unit become tags of its device", async () => {
  await using device = await modbusDevice();
  device.unit(3).set("hr", 10, [231, 50]);
  await using world = await discoverWorld();
  const { look } = (await world.ask("open", { url: `tcp://127.0.0.1:${device.port}?unit=3&from=10&to=12` })).body;
  const nodes = await eventually(async () => {
    const { body } = await world.ask("list", { look, search: "hr:1" });
    return body.busy ? undefined : body.nodes;
  });
  const wish = { look, name: "meter", template: "{source}.{path}", nodes: nodes.slice(0, 1).map(chosen) };
  const { body } = await world.ask("propose", wish);
  expect(body.errors).toEqual([]);
  expect(body.yaml).toMatch(/devices:\n {6}- unit: 3\n {8}tags:\n {10}- \{ input: meter\.unit3\.hr:10, at: /);
  expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(200);
});

test("a search follows the values of its nodes, and reads no address that the source must not read", async () => {
  await using device = await modbusDevice();
  device.unit(3).set("hr", 0, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  device.unit(3).set("hr", 100, [231, 0x4120, 0]);
  device.unit(3).set("co", 5, [1]);
  const url = `tcp://127.0.0.1:${device.port}`;
  const stop = new AbortController();
  const tags = [{ at: "hr:100", unit: 3, every: 1_000, forbid: ["hr:6..11"] }];
  await using source = await openModbusSource({ url }, tags, testRuntime(), stop.signal);
  const forbidden = () => device.requests.filter((r) => r.function === 3 && r.start <= 11 && r.start + r.count > 6);
  await using world = await discoverWorld({ running: () => [source] });
  // The address leads to the same device, so the search takes the connection of the source.
  const { look } = (await world.ask("open", { url: `${url}?unit=3&from=0&to=104` })).body;
  const nodes: Node[] = await eventually(async () => {
    const { body } = await world.ask("list", { look });
    return body.busy ? undefined : body.nodes;
  });
  const keyOf = (address: string) => nodes.find((node) => node["address"] === address)?.key ?? "";
  device.unit(3).set("hr", 100, [232, 0x4130]);
  device.unit(3).set("co", 5, [0]);
  const keys = ["hr:0 u16", "hr:100 u16", "hr:101 f32", "co:5"].map(keyOf);
  await eventually(async () => {
    const { values } = (await world.ask("values", { look, keys })).body;
    return JSON.stringify(keys.map((key) => values[key])) === "[1,232,11,false]";
  });
  expect(forbidden()).toEqual([]);
  expect(device.accepted).toBe(1);
});

test.for(["refuses", "evicts", "ignores"] as const)(
  "a device that %s a second connection is left to a source that connects, while a page reads it",
  async (single) => {
    await using device = await modbusDevice();
    device.unit(3).set("hr", 0, [231]);
    const url = `tcp://127.0.0.1:${device.port}`;
    let source: Source | undefined;
    await using world = await discoverWorld({ running: () => (source ? [source] : []) });
    const { look } = (await world.ask("open", { url: `${url}?unit=3&from=0&to=1` })).body;
    const nodes: Node[] = await eventually(async () => {
      const { body } = await world.ask("list", { look });
      return body.busy ? undefined : body.nodes;
    });
    const keys = nodes.filter((node) => node["address"] === "hr:0 u16").map(({ key }) => key);
    const values = async () => (await world.ask("values", { look, keys })).body.values;
    device.single = single;
    // A request of the page is under way most of the time.
    device.latencyMs = 20;
    const stop = new AbortController();
    const follow = async () => {
      while (!stop.signal.aborted) await values();
    };
    const following = follow();
    await using _ended = {
      async [Symbol.asyncDispose]() {
        stop.abort();
        await following;
      },
    };
    const { signal } = stop;
    const read = await eventually(async () => {
      await using opened = await openModbusSource(
        { url, timeout: "1s" },
        [{ at: "hr:0", unit: 3 }],
        testRuntime(),
        signal,
      );
      source = opened;
      try {
        return await readUntil(opened, signal, allRead(1));
      } finally {
        source = undefined;
      }
    });

    expect(read.map(({ value }) => value)).toEqual(read.map(() => 231));
    // Afterwards the device is free for the search again, once it has noticed that the source is gone.
    await eventually(async () => Object.values((await values()) ?? {}).includes(231));
  },
);
