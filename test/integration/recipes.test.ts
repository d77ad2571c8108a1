// Each recipe of config/recipes is a valid configuration, and what its device sends becomes the points of its fixture:
// `payloads.json` through the reader of MQTT messages, `registers.json` from a Modbus TCP device, and `nodes.json` from an
// OPC UA server with these NodeIds, with encryption and a login. The devices are in this process.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DataType } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import { expect, test } from "vitest";
import { z } from "zod";
import { openMapping } from "../../src/mapping/source-mapping.ts";
import { complaints, load } from "../support/config.ts";
import { type DeviceTable, modbusDevice } from "../support/modbus-device.ts";
import { brief, mapConfigured, messagesFile, pointsFile, readFixture } from "../support/mqtt-points.ts";
import { putKey } from "../support/opcua-key.ts";
import { opcuaServer, user } from "../support/opcua-server.ts";
import { trusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = join(import.meta.dirname, "../../config/recipes");
const recipes = readdirSync(folder);
const recipeOf = (name: string) => readFileSync(join(folder, name, "recipe.yaml"), "utf8");
const withFixture = (file: string) => recipes.filter((name) => existsSync(join(folder, name, file)));
const fixtureOf = <T extends z.ZodType>(schema: T, name: string, file: string): z.output<T> =>
  schema.parse(JSON.parse(readFileSync(join(folder, name, file), "utf8")));
/** Secrets, which have no default. */
const variables = {
  SERVICE_PASSWORD: "a",
  MQTT_PASSWORD: "b",
  TTS_API_KEY: "c",
  OPCUA_USERNAME: user.name,
  OPCUA_PASSWORD: user.password,
};

test("every recipe has a fixture, and stands in docs/recipes.md", () => {
  const fixtures = ["payloads.json", "registers.json", "nodes.json"].flatMap(withFixture);
  expect(fixtures.toSorted()).toEqual(recipes.toSorted());
  const page = readFileSync(join(folder, "../../docs/recipes.md"), "utf8");
  const rows = [...page.matchAll(/^\| \[`([\w-]+)`\]\(\.\.\/config\/recipes\/([\w-]+)\/recipe\.yaml\)/gm)];
  expect(rows.map(([, name = ""]) => name).toSorted()).toEqual(recipes.toSorted());
  expect(rows.map(([, , path]) => path)).toEqual(rows.map(([, name]) => name));
});

test.each(recipes)(
  "%s is valid without a warning, and says what it reads and where that is documented",
  async (name) => {
    const text = recipeOf(name);
    expect(await complaints(text, variables)).toBe("");
    expect(text).toMatch(/^# [^\n:]+: [^\n]+\n# Facts: [^\n]+\n/);
  },
);

/** A name instead of messages or points: those of a fixture in test/fixtures/mqtt. */
const payloadsFile = z.strictObject({
  messages: z.string().or(messagesFile),
  points: z.string().or(pointsFile),
});

test.each(withFixture("payloads.json"))("%s gives the points of its payloads", async (name) => {
  const { messages, points } = fixtureOf(payloadsFile, name, "payloads.json");
  const received = typeof messages === "string" ? readFixture(messagesFile, messages, "messages") : messages;
  const expected = typeof points === "string" ? readFixture(pointsFile, points, "points") : points;
  const mapped = await mapConfigured(recipeOf(name), received, variables);
  expect(mapped.points.map(brief)).toEqual(expected);
  expect(mapped.refused).toEqual([]);
  expect(mapped.lastUnnamed).toBeUndefined();
});

const expectedPoints = z.array(z.tuple([z.string(), z.number()]));
const registersFile = z.strictObject({
  /** Unit → table and first address → hexadecimal words, or bits. */
  units: z.record(z.string(), z.record(z.string().regex(/^(co|di|hr|ir):\d+$/), z.string())),
  points: expectedPoints,
});

test.each(withFixture("registers.json"))("%s gives the points of its registers", async (name) => {
  const { units, points } = fixtureOf(registersFile, name, "registers.json");
  await using device = await modbusDevice();
  for (const [unit, blocks] of Object.entries(units))
    for (const [place, words] of Object.entries(blocks)) {
      const [table = "", start] = place.split(":");
      const values = words.split(" ").map((word) => Number.parseInt(word, 16));
      device.unit(Number(unit)).set(table as DeviceTable, Number(start), values); // the schema allows no other
    }
  using files = temporaryFolder();
  expect(await firstPoints(name, device.url, files.path, points.length)).toEqual(points);
});

const nodesFile = z.strictObject({
  namespace: z.string(),
  /** Identifier, data type, value. */
  nodes: z.array(
    z.tuple([
      z.string(),
      z.enum(["Boolean", "Int16", "Int32", "UInt32", "Float", "Double"]),
      z.number().or(z.boolean()),
    ]),
  ),
  points: expectedPoints,
});

test.each(withFixture("nodes.json"))("%s gives the points of its nodes", async (name) => {
  const { namespace, nodes, points } = fixtureOf(nodesFile, name, "nodes.json");
  using files = temporaryFolder();
  const meddle = ({ engine: { addressSpace: space } }: OPCUAServer) => {
    if (!space) throw new TypeError("an initialized server has an address space");
    const own = space.registerNamespace(namespace);
    for (const [browseName, type, value] of nodes) {
      const dataType = DataType[type];
      const place = { organizedBy: space.rootFolder.objects, browseName, nodeId: `s=${browseName}`, dataType };
      own.addVariable(place).setValueFromSource({ dataType, value });
    }
  };
  await using server = await opcuaServer({ folder: files.file("server"), secure: true, anonymous: false, meddle });
  await putKey("agent", files.file("pki"));
  expect(await firstPoints(name, server.url, files.path, points.length)).toEqual(points);
});

/** Input IDs and values of the first point of each tag, in the order of the tags, of the recipe with this address. */
async function firstPoints(name: string, url: string, stateDir: string, count: number) {
  const { sources } = await load(recipeOf(name), { ...variables, DEVICE_URL: url });
  const [source] = sources;
  if (!source || sources.length > 1) throw new Error("a recipe has one source");
  const { driver, options, rules } = source;
  const runtime = testRuntime();
  // Faster than the recipe asks, so that the test need not wait.
  const tags = source.tags.map((tag) => ({ ...tag, every: 50 }));
  const config = { name: source.name, agent: "test", stateDir, options, tags, final: () => true };
  const signal = AbortSignal.timeout(60_000);
  await using opened = await trusting(stateDir, () => driver.open(config, runtime, signal));
  using mapping = openMapping({ source: source.name, rules, catalog: { describe: () => {} } }, runtime);
  const values = new Map<string, number>();
  for await (const delivery of opened.deliveries(signal)) {
    for (const { input, value } of mapping.map(delivery)) if (!values.has(input)) values.set(input, value);
    delivery.ack();
    if (values.size >= count) break;
  }
  const order = rules.map(({ input }) => input);
  return [...values].toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b));
}
