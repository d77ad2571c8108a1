// Tags of a broker and of a Modbus device are found and written, as the page does it.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { discoverWorld } from "../../support/discover-world.ts";
import { eventually } from "../../support/eventually.ts";
import { modbusDevice } from "../../support/modbus-device.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";

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
