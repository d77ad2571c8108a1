// Trying a configuration on real devices while the agent may be running with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { openMqttSource } from "../support/mqtt-source.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { program } from "../support/program.ts";
import { testRuntime } from "../support/runtime.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

/** Writes a configuration with `sources` to a file. */
function configured(home: TemporaryFolder, sources: string): string {
  const file = home.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(home.file("data"))} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
sources:
${sources}`,
  );
  return file;
}

test("every tag is shown raw and mapped, and the exit status shows whether all gave a good value", async () => {
  using home = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2314, 1, 7]);
  device.unit(1).refuse("hr", 9, 9, 2);
  const tags = (more = "") => `  bus:
    type: modbus
    url: ${device.url}
    every: 100ms
    devices:
      - unit: 1
        tags:
          - { input: voltage, at: "hr:0 u16", scale: 0.1, report: { deadband: 5 }, signal: { engUnit: V } }
          - { input: breaker, at: "hr:1 u16", signal: { type: enum, enumValues: { 0: open, 1: closed } } }
${more}`;
  const file = configured(home, tags());
  const good = await command(["test", "-c", file, "--once"]);
  expect(good.status).toBe(0);
  expect(good.stdout).toMatch(/^ {2}bus {2}voltage {2}231\.4 V +raw 2314 {2}hr:0 u16 {2}\S+Z \(here\) {2}good$/m);
  expect(good.stdout).toMatch(/^ {2}bus {2}breaker {2}1 closed +raw 1 /m);
  expect(good.stderr).toBe("bus (modbus): 2 tags of 2 with a good value\n");
  expect(existsSync(home.file("data"))).toBe(false);

  configured(home, tags('          - { input: missing, at: "hr:9 u16" }\n'));
  const bad = await command(["test", "-c", file, "--once", "--json"]);
  expect(bad.status).toBe(1);
  const lines = bad.stdout
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(lines).toContainEqual(expect.objectContaining({ input: "voltage", raw: 2314, value: 231.4, quality: "good" }));
  expect(lines).toContainEqual(
    expect.objectContaining({ input: "missing", quality: "bad", reason: expect.stringContaining("exception 2") }),
  );
});

test("a broker's messages are shown while the agent's session loses none and keeps its connection", async () => {
  using home = temporaryFolder();
  await using broker = await openMqttBroker();
  await using _agent = await openMqttSource(
    { options: { url: broker.url, clientId: "gw1-hall" }, tags: [{ topic: "$share/plant/hall/{room}" }] },
    testRuntime(),
    new AbortController().signal,
  );
  const file = configured(
    home,
    `  hall:
    type: mqtt
    url: ${broker.url}
    tags:
      - { input: "hall.{room}", topic: "$share/plant/hall/{room}" }
      - { input: silent, topic: "silent" }
`,
  );
  const stop = new AbortController();
  const shown: string[] = [];
  const looking = command(["test", "-c", file], { signal: stop.signal, print: (line) => shown.push(line) });
  const own = await eventually(() => broker.clients.find((client) => client.startsWith("gw1-hall-probe-")));
  await eventually(() => broker.subscriptions(own).includes("hall/+") && broker.subscriptions(own).includes("silent"));
  await broker.publish("hall/north", "21.5");
  await broker.publish("silent", "still here");
  // The broker delivers in order: when this message is here, the earlier ones are too.
  await eventually(() => shown.join("").includes("still here"));
  stop.abort(new Error("^C"));
  const { status, stdout } = await looking;

  expect(status).toBe(0);
  expect(stdout).toMatch(/no point +raw still here .* the text "still here" is no number/);
  expect(broker.clients).toContain("gw1-hall");
  expect(broker.subscriptions("gw1-hall")).toEqual(["$share/plant/hall/+"]);
  expect(stdout).toMatch(/hall\.north +21\.5 +raw 21\.5 +hall\/north/);

  // A retained value of unknown age is not used; the command says so.
  await broker.publish("silent", "7", { retain: true });
  const once = await command(["test", "-c", file, "--once", "--within", "300ms"]);
  expect(once.stdout).toMatch(/silent {2}nothing came within 300ms/);
  expect(once.stderr).toContain("counts only if it carries a time of its own, or with retained: use");
});

test("messages without a value are explained: by position in a list, by what is not JSON, or by a wrong path", async () => {
  using home = temporaryFolder();
  await using broker = await openMqttBroker();
  const cases = [
    ["list", '[{"v":1},{"v":2}]', 'input: "x.{key}", value: "$[*].v"'],
    ["text", "hello", 'input: "y.{key}", value: "$[*].v"'],
    ["object", '{"temp":21.5}', "input: z, value: $.tmp"],
    ["none", '{"l":[]}', 'input: "u.{key}", value: "$.m[*]"'],
  ] as const;
  for (const [topic, payload] of cases) await broker.publish(topic, payload, { retain: true });
  const sources = cases.map(
    ([topic, , tag]) =>
      `  ${topic}: { type: mqtt, url: "${broker.url}", tags: [{ topic: ${topic}, ${tag}, retained: use }] }`,
  );
  const file = configured(home, sources.join("\n"));
  // The messages come at once. The command waits for values to the end.
  const { status, stderr } = await command(["test", "-c", file, "--once", "--within", "4s"]);
  for (const said of [
    /^list \(mqtt\): list: only its position in a list distinguishes a value at \$\[\*\]\.v.*capture: \{ id/m,
    /^text \(mqtt\): text: payload .*JSON/m,
    /^object \(mqtt\): object: the payload has nothing at \$\.tmp$/m,
    /^none \(mqtt\): none: the payload has nothing at \$\.m\[\*\]$/m,
  ])
    expect(stderr).toMatch(said);
  expect(status).toBe(1);
});

test("an OPC UA server is read with the agent's certificates and a session of its own", async () => {
  using home = temporaryFolder();
  await using server = await opcuaServer({ folder: home.file("server") });
  const stateDir = home.file("data/sources/line");
  mkdirSync(stateDir, { recursive: true });
  const security = { security: { mode: "none" } };
  const tags = [{ node: "nsu=urn:tagferry:test:line;s=Temp" }];
  await using agent = collect(await openOpcuaSource({ stateDir, options: { url: server.url, ...security }, tags }));
  await agent.reading(({ quality }) => quality === "good");
  const file = configured(
    home,
    `  line:
    type: opcua
    url: ${server.url}
    security: { mode: none }
    tags: [{ input: temp, node: "nsu=urn:tagferry:test:line;s=Temp" }]
`,
  );
  const { status, stdout } = await command(["test", "-c", file, "--once"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/line {2}temp {2}20 °C {2}raw 20 /);
  server.set("Temp", 77);
  await agent.reading(({ value }) => value === 77);
});

test("a source that cannot be reached is named and does not stop the others", async () => {
  using home = temporaryFolder();
  const file = configured(
    home,
    `  gone: { type: modbus, url: "tcp://127.0.0.1:1", devices: [{ unit: 1, tags: [{ input: a, at: "hr:0 u16" }] }] }
  demo: { type: simulator, tags: [{ input: demo.sine, every: 50ms }] }
`,
  );
  const both = await command(["test", "-c", file, "--once"]);
  expect(both.status).toBe(69);
  expect(both.stderr).toContain("tagferry: gone: ");
  expect(both.stderr).toContain("demo (simulator): 1 tag of 1 with a good value");
  const one = await command(["test", "-c", file, "--once", "--source", "demo"]);
  expect(one.status).toBe(0);
  const none = await command(["test", "-c", file, "--source", "demmo"]);
  expect(none).toMatchObject({ status: 2, stderr: expect.stringContaining("there are: gone, demo") });
});

test("on a terminal one table is redrawn with problems first; ^C leaves it on the screen", async () => {
  using home = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2314]);
  device.unit(1).refuse("hr", 9, 9, 2);
  const file = configured(
    home,
    `  bus:
    type: modbus
    url: ${device.url}
    every: 100ms
    devices: [{ unit: 1, tags: [{ input: voltage, at: "hr:0 u16", scale: 0.1 }, { input: missing, at: "hr:9 u16" }] }]
  away: { type: mqtt, url: "mqtt://127.0.0.1:1", tags: [{ input: a, topic: a }] }
`,
  );
  const stop = new AbortController();
  const drawn: (readonly string[])[] = [];
  const looking = command(["test", "-c", file], { signal: stop.signal, draw: (lines) => void drawn.push(lines) });
  await eventually(
    () => drawn.at(-1)?.some((line) => line.includes("231.4")) && drawn.at(-1)?.[1]?.includes("127.0.0.1:1"),
  );
  device.unit(1).set("hr", 0, [2320]);
  await eventually(() => drawn.at(-1)?.some((line) => line.includes("232  ")));
  stop.abort(new Error("^C"));
  const { stdout, stderr } = await looking;

  expect(stdout + stderr).toBe("");
  expect(drawn[0]).toEqual(["0 of 0 with a good value, 0 readings; ^C ends it", "bus: connecting", "away: connecting"]);
  const last = drawn.at(-1) ?? [];
  expect(last[0]).toMatch(/^1 of 2 with a good value, \d+ readings; \^C ends it$/);
  expect(last[1]).toMatch(/^away: .*127\.0\.0\.1:1.*; check address, port, cable and firewall/);
  expect(last[2]).toMatch(/^ {2}bus {2}missing {2}no point .*exception 2/);
  expect(last[3]).toMatch(/^ {2}bus {2}voltage {2}232 .*raw 2320 .*good$/);
  expect(last).toHaveLength(4);
});

test("a configuration without sources is reported with the command that adds some", async () => {
  using home = temporaryFolder();
  const file = configured(home, "  {}\n");
  const { status, stderr } = await command(["test", "-c", file]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/has no sources yet; tagferry browse URL --yaml lists what a device offers\n$/);
});

test("the command ends when its reader ends early, as head -1 does", async () => {
  using home = temporaryFolder();
  const file = configured(home, `  demo: { type: simulator, every: 50ms, tags: [{ input: a, wave: sine }] }\n`);
  const child = spawn(process.execPath, [program, "test", "-c", file], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  child.stdout.destroy();

  expect(await once(child, "exit")).toEqual([0, null]);
});

test("a time ahead of this machine is shown as the agent handles it: dropped, or replaced by the time of arrival", async () => {
  using home = temporaryFolder();
  await using broker = await openMqttBroker();
  const time = "at: $.t, format: unixMs";
  const file = configured(
    home,
    `  hall:
    type: mqtt
    url: ${broker.url}
    tags:
      - { input: dropped, topic: dropped, value: "$.v", time: { ${time}, unusable: drop } }
      - { input: arrival, topic: arrival, value: "$.v", time: { ${time} } }
`,
  );

  const looking = command(["test", "-c", file, "--once"]);
  const own = await eventually(() => broker.clients.find((client) => client.startsWith("gw1-hall-probe-")));
  await eventually(() => ["dropped", "arrival"].every((topic) => broker.subscriptions(own).includes(topic)));
  const payload = JSON.stringify({ v: 1, t: Date.now() + 3_600_000 });
  for (const topic of ["dropped", "arrival"]) await broker.publish(topic, payload);
  const { status, stdout } = await looking;

  expect(stdout).toMatch(/ dropped +no point +raw 1 .* bad: the device's time \S+Z is ahead of this machine's clock/);
  expect(stdout).toMatch(/ arrival +1 .* \(here\) +.* is more than 5m ahead; the time of arrival is taken/);
  expect(status).toBe(1);
});
