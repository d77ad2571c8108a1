// One Input ID fed from several addresses: how the service and the commands `status`, `check` and `test` show it.
// Uses an OPC UA server with twelve motors and a broker with two rooms.
import { writeFileSync } from "node:fs";
import type { UAVariable } from "node-opcua-address-space";
import { DataType } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import { expect, test } from "vitest";
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const motors = Array.from({ length: 12 }, (_, i) => `M${String(i + 1).padStart(2, "0")}`);

/** Adds Objects/Line3/Motors/M01 to M12. The Current of each motor is its number. */
function addMotors(server: OPCUAServer): UAVariable[] {
  const space = server.engine.addressSpace;
  const own = space?.getOwnNamespace();
  if (!space || !own) throw new Error("the server has no address space");
  const line = own.addFolder(space.rootFolder.objects, { browseName: "Line3" });
  const folder = own.addFolder(line, { browseName: "Motors" });
  return motors.map((name, i) => {
    const motor = own.addObject({ organizedBy: folder, browseName: name });
    const value = { dataType: "Double", value: i + 1 } as const;
    return own.addVariable({ componentOf: motor, browseName: "Current", dataType: "Double", value });
  });
}

function head(service: TestService, dataDir: string): string {
  return `version: 1
agent: { name: gw1, dataDir: ${dataDir}, ownSignals: "off" }
service: { url: ${service.url}, integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: 127.0.0.1:0 }
`;
}

/** The stored values by Input ID. */
async function stored(service: TestService): Promise<Record<string, readonly number[]>> {
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const now = Date.now() * 1_000;
  const span = { from: epochMicros(now - 600e6), before: epochMicros(now + 60e6) };
  const found = await readBack(reader, span, testRuntime(), AbortSignal.timeout(30_000));
  return Object.fromEntries([...found].map(([input, values]) => [input, [...values.keys()].toSorted((a, b) => a - b)]));
}

const delivered = async (agent: AgentProcess) => {
  const { upload, sources } = await agent.status();
  return sources.every(({ points }) => points > 0) && upload.backlogPoints === 0 && upload.points > 0;
};

test("of motors with one name only one feeds the signal, and the others are listed with the remedy", {
  timeout: 240_000,
}, async () => {
  using home = temporaryFolder();
  await using service = await testService({ throttle: "off" });
  let currents: UAVariable[] = [];
  const meddle = (space: OPCUAServer) => {
    currents = addMotors(space);
  };
  await using server = await opcuaServer({ folder: home.file("server"), meddle });
  const configuration = (input: string) => `${head(service, home.file("data"))}sources:
  line3:
    type: opcua
    url: ${server.url}
    security: { mode: none }
    every: 100ms
    tags: [{ input: "${input}", browse: "Line3/Motors/**" }]
`;
  const folder = home.path;
  for (let run = 0; run < 2; run++) {
    await using agent = await startAgent({ folder, configuration: configuration("line3.{name}") });
    await eventually(async () => (await agent.status()).sources[0]?.state === "online", 60_000);
    // In reverse order, so that the order of arrival differs from the order of the motors.
    for (const [i, current] of [...currents.entries()].toReversed())
      current.setValueFromSource({ dataType: DataType.Double, value: 100 * (run + 1) + i + 1 });
    await eventually(async () => (await agent.status()).tags[0]?.value === 100 * (run + 1) + 1, 60_000);
    await eventually(() => delivered(agent), 60_000);
    const { "line3.Current": values = [] } = await stored(service);
    expect(values.filter((value) => value % 100 !== 1)).toEqual([]);
    const { tags, refusedInputs, warnings } = await agent.status();
    expect(tags).toMatchObject([
      { input: "line3.Current", address: "Line3/Motors/M01/Current", value: 100 * (run + 1) + 1 },
    ]);
    expect(refusedInputs.map(({ address }) => address)).toEqual(
      motors.slice(1).map((motor) => `Line3/Motors/${motor}/Current`),
    );
    expect(warnings).toContainEqual({
      level: "error",
      title: "readings refused for 1 Input ID",
      message: expect.stringMatching(
        /^line3\.Current is fed by line3 Line3\/Motors\/M01\/Current; refused: line3 Line3\/Motors\/M02\/Current, .* and 8 more/,
      ),
      remedy: expect.stringContaining("use {path}"),
    });
    const { stdout } = await command(["status", "--url", agent.page]);
    expect(stdout).toMatch(/M01\/Current; refused: line3 Line3\/Motors\/M02\/Current.*\n.*use \{path\}/);
    const metrics = await (await fetch(new URL("/metrics", agent.page))).text();
    expect(metrics).toMatch(/tagferry_mapping_dropped_readings_total\{[^}]*secondAddress[^}]*\} \d+/);
  }

  const file = home.file("other.yaml");
  writeFileSync(file, configuration("line3.{name}"));
  const checked = await command(["check", "-c", file, "--online"]);
  expect(checked.status).toBe(1);
  expect(checked.stdout).toMatch(/warning: .*have the same name.*\n.*use \{path\}/);
  expect(checked.stdout).toMatch(/line3: answers.*\n.*M01\/Current; refused: .*M02\/Current.*\n.*use \{path\}/);
  const tested = await command(["test", "-c", file, "--once"]);
  expect(tested.status).toBe(1);
  expect(tested.stderr).toMatch(/M01\/Current; refused: .*M02\/Current.*\n.*use \{path\}/);

  {
    await using agent = await startAgent({ folder, configuration: configuration("line3.{path}") });
    await eventually(async () => (await agent.status()).tags.length === 12 && (await delivered(agent)), 60_000);
    expect((await agent.status()).refusedInputs).toEqual([]);
  }
  const { "line3.Current": _before, ...all } = await stored(service);
  expect(Object.keys(all)).toEqual(motors.map((motor) => `line3.${motor}/Current`));
  // The server resends what the killed agent had not acknowledged: earlier values of the same motor.
  for (const [i, motor] of motors.entries()) {
    const values = all[`line3.${motor}/Current`] ?? [];
    expect(values).toContain(200 + i + 1);
    expect(values.filter((value) => value % 100 !== i + 1)).toEqual([]);
  }
});

test("of two topics of one filter the first one feeds the Input ID, also after a restart", {
  timeout: 240_000,
}, async () => {
  using home = temporaryFolder();
  await using service = await testService({ throttle: "off" });
  await using broker = await openMosquitto();
  const publisher = await broker.publisher();
  const configuration = (tag: string) => `${head(service, home.file("data"))}sources:
  hall:
    type: mqtt
    url: ${broker.url}
    username: ${broker.username}
    password: "${broker.password}"
    tags: [${tag}]
`;
  const folder = home.path;
  const wildcard = "{ input: hall.temp, topic: sensors/+/temp }";
  const publish = (room: string, value: number) =>
    publisher.publishAsync(`sensors/${room}/temp`, String(value), { qos: 1 });
  const readings = async (agent: AgentProcess) => (await agent.status()).sources[0]?.readings;
  {
    await using agent = await startAgent({ folder, configuration: configuration(wildcard) });
    await eventually(async () => (await agent.status()).sources[0]?.state === "online", 30_000);
    await publish("z", 1);
    await publish("a", 100);
    await eventually(async () => (await readings(agent)) === 2, 30_000);
    await agent.stop();
  }
  {
    await using agent = await startAgent({ folder, configuration: configuration(wildcard) });
    await eventually(async () => (await agent.status()).sources[0]?.state === "online", 30_000);
    await publish("a", 101);
    await publish("z", 2);
    await eventually(async () => (await readings(agent)) === 2 && (await delivered(agent)), 30_000);
    expect(await stored(service)).toEqual({ "hall.temp": [1, 2] });
    expect((await agent.status()).refusedInputs).toMatchObject([
      {
        input: "hall.temp",
        address: "sensors/a/temp",
        fedBy: { source: "hall", address: "sensors/z/temp" },
        readings: 1,
      },
    ]);
  }
  await using agent = await startAgent({
    folder,
    configuration: configuration(wildcard.replace(" }", ", shared: true }")),
  });
  await eventually(async () => (await agent.status()).sources[0]?.state === "online", 30_000);
  await publish("a", 102);
  await publish("z", 3);
  await eventually(async () => (await readings(agent)) === 2 && (await delivered(agent)), 30_000);
  expect(await stored(service)).toEqual({ "hall.temp": [1, 2, 3, 102] });
});
