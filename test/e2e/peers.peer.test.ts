// One tag from each of three third-party devices, delivered to the service: value, time and metadata.
import { expect, test } from "vitest";
import { epochMicros } from "../../src/core/point.ts";
import { formatTimestamp } from "../../src/wire/timestamp.ts";
import { startAgent } from "../support/agent-process.ts";
import { asyncua } from "../support/asyncua.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { pymodbus } from "../support/pymodbus.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("tags of mosquitto, pymodbus and asyncua arrive with the right value, time and metadata", {
  timeout: 180_000,
}, async () => {
  using folder = temporaryFolder();
  await using broker = await openMosquitto();
  // 123456.79 as float32 with the most significant word last, and 2,315 for a voltage in tenths.
  const registers = { 0: [2_315], 4: [0x2065, 0x47f1] };
  await using meter = await pymodbus({ transport: "tcp", framer: "socket", units: { 3: { hr: registers } } });
  await using plc = await asyncua({ folder: folder.file("plc") });
  await using service = await testService({ throttle: "queue" });
  const started = Date.now();
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: peers, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
templates:
  meter:
    - { input: "{dev}.voltage", at: "hr:0 u16", scale: 0.1, signal: { engUnit: V, description: "phase {dev}" } }
    - { input: "{dev}.power", at: "hr:4 f32 cdab", signal: { engUnit: kW, labels: { site: [north] } } }
sources:
  hall:
    type: mqtt
    url: ${broker.url}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "hall.{room}.temp", topic: "sensors/{room}/env", value: $.t, time: { at: $.ts, format: unixMs }, signal: { name: "Temperature {room}", engUnit: °C } }
      - { input: hall.lamp, topic: lamp/state, values: { "ON": 1, "OFF": 0 }, signal: { type: enum, enumValues: { 0: off, 1: on } } }
  bus:
    type: modbus
    url: tcp://127.0.0.1:${meter.port}
    every: 500ms
    devices: [{ unit: 3, template: meter, vars: { dev: m1 } }]
  line3:
    type: opcua
    url: ${plc.url}
    security: { mode: none }
    every: 100ms
    tags:
      - { input: line3.temp, node: "nsu=urn:tagferry:test:line;s=Temp" }
      - { input: line3.state, path: Line/State }
      - { input: line3.nope, node: "nsu=urn:tagferry:test:line;s=Nope" }
`,
  });
  await eventually(async () => (await agent.status()).sources.every(({ state }) => state === "online"), 30_000);

  const publisher = await broker.publisher();
  await publisher.publishAsync("sensors/r1/env", JSON.stringify({ ts: 1_767_225_600_123, t: 21.75 }), { qos: 1 });
  await publisher.publishAsync("sensors/r2/env", "{not json", { qos: 1 });
  await publisher.publishAsync("lamp/state", "ON", { qos: 1 });
  // Later than the time of the subscription's initial values.
  const at = Math.ceil(Date.now() / 1_000) + 0.123_456;
  await plc.set("Temp", 87.5, at);
  await plc.set("State", 2, at);

  const wanted = ["hall.r1.temp", "hall.lamp", "m1.voltage", "m1.power", "line3.temp", "line3.state"];
  const items = await eventually(() => publishedItems(service, wanted), 30_000);
  const read = () => points(service, items);
  const { temp, stored } = await eventually(async () => {
    const all = await read();
    const found = all["line3.temp"]?.find(([, value]) => value === 87.5);
    if (found === undefined || all["line3.state"]?.at(-1)?.[1] !== 2) return undefined;
    // All registers of a poll get the time of its start. A block that is read 100 ms later gets its own time.
    const polls = new Set(all["m1.voltage"]?.map(([time]) => time));
    if (all["m1.power"]?.some(([time]) => polls.has(time)) !== true) return undefined;
    return all["hall.r1.temp"] && all["hall.lamp"] ? { temp: found, stored: all } : undefined;
  }, 60_000);

  expect(stored["hall.r1.temp"]).toEqual([["2026-01-01T00:00:00.123Z", 21.75]]);
  expect(stored["hall.lamp"]?.map(([, value]) => value)).toEqual([1]);
  expect(new Set(stored["m1.voltage"]?.map(([, value]) => value))).toEqual(new Set([231.5]));
  expect(new Set(stored["m1.power"]?.map(([, value]) => value))).toEqual(new Set([123456.79]));
  for (const [time] of stored["m1.voltage"] ?? []) {
    expect(Date.parse(time)).toBeGreaterThanOrEqual(started - 1_000);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
  }
  expect(temp[0]).toBe(formatTimestamp(epochMicros(Math.round(at * 1e6))));
  expect(stored["line3.state"]?.at(-1)?.[1]).toBe(2);

  const views = Object.values(await signals(service));
  const view = (name: string) => views.find((candidate) => candidate.name === name);
  expect(view("Temperature r1")).toMatchObject({ engUnit: "°C", type: "numeric" });
  expect(view("hall.lamp")).toMatchObject({ type: "enum", enumValues: { 0: "off", 1: "on" } });
  expect(view("m1.voltage")).toMatchObject({ engUnit: "V", description: "phase m1" });
  expect(view("m1.power")).toMatchObject({ engUnit: "kW", labels: { site: ["north"] } });
  expect(view("Temp")).toMatchObject({ engUnit: "°C", description: "in the middle" });
  expect(view("State")).toMatchObject({ type: "enum", enumValues: { 0: "Off", 1: "On", 2: "Fault" } });

  const { tags } = await agent.status();
  const bad = tags.filter(({ failures }) => failures > 0);
  expect(bad.map(({ input }) => input)).toEqual(expect.arrayContaining(["line3.nope"]));
  expect(bad.find(({ input }) => input === "line3.nope")?.reason).toContain("BadNodeIdUnknown");
});

interface SignalView {
  readonly name: string;
  readonly inputId?: string;
  readonly item: string | null;
}

async function signals(service: TestService): Promise<Readonly<Record<string, SignalView>>> {
  const reply = await service.call("admin.selectSignals", { integration, signals: { include: true, limit: 1_000 } });
  return reply.body?.result?.signals ?? {};
}

/** Maps item IDs to Input IDs. Resolves when each of `inputs` has a signal. */
async function publishedItems(
  service: TestService,
  inputs: readonly string[],
): Promise<ReadonlyMap<string, string> | undefined> {
  const found = Object.entries(await signals(service));
  if (found.length < inputs.length) return undefined;
  const save = { name: "x", type: "numeric", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(found.map(([id]) => [id, save]));
  await service.call("admin.publishSignals", { integration, itemsBySignal });
  const published = Object.values(await signals(service));
  return new Map(published.map(({ item, inputId, name }) => [item ?? "", inputId ?? name]));
}

async function points(
  service: TestService,
  items: ReadonlyMap<string, string>,
): Promise<Readonly<Record<string, [string, number][]>>> {
  const found: Record<string, [string, number][]> = {};
  const reply = await service.call("platform.selectItems", {
    items: { limit: 50 },
    data: { include: true, notBefore: "2025-12-31T00:00:00Z", before: "2026-02-01T00:00:00Z" },
  });
  const recent = await service.call("platform.selectItems", { items: { limit: 50 }, data: { include: true } });
  for (const { body } of [reply, recent]) {
    const { times = [], series = {} } = body?.result?.data ?? {};
    for (const [item, values] of Object.entries(series as Record<string, (number | null)[]>))
      for (const [i, value] of values.entries())
        if (value !== null) (found[items.get(item) ?? item] ??= []).push([times[i], value]);
  }
  return found;
}
