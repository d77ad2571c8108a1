// Tags that a device or broker refuses: `check --online` names each with its line, the expected and the received value,
// and the remedy.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DataType } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { putKey } from "../support/opcua-key.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { integration } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Runs `check --online` with a service that is unreachable. Returns the output about the source, without times. */
async function checkOnline(home: ReturnType<typeof temporaryFolder>, source: string, more: readonly string[] = []) {
  const file = home.file("agent.yaml");
  const service = `{ url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: x } } }`;
  const agent = `{ name: gw1, dataDir: ${JSON.stringify(home.file("data"))} }`;
  writeFileSync(file, `version: 1\nagent: ${agent}\nservice: ${service}\nsources:\n  line:\n${source}`);
  const { status, stdout } = await command(["check", "--online", "-c", file, ...more]);
  const text = stdout.replaceAll(file, "agent.yaml");
  return { status, stdout: text, said: text.slice(text.indexOf("\nline: ") + 1).replaceAll(/\d+ ms/g, "N ms") };
}

/** Adds variables below Objects whose values cannot be stored. */
function addUnusable(server: OPCUAServer): void {
  const space = server.engine.addressSpace;
  const own = space?.getOwnNamespace();
  if (!space || !own) throw new Error("the server has no address space");
  const add = (browseName: string, dataType: DataType, value: unknown, more = {}) =>
    own.addVariable({
      organizedBy: space.rootFolder.objects,
      browseName,
      nodeId: `s=${browseName}`,
      dataType,
      value: { dataType, value },
      ...more,
    });
  add("Secret", DataType.Double, 1, { accessLevel: "CurrentWrite", userAccessLevel: "CurrentWrite" });
  add("Photo", DataType.ByteString, Buffer.from("jpeg"));
  add("Recipe", DataType.String, "apple pie");
}

test("check --online names each OPC UA node that is missing, may not be read or cannot be stored, with its line", async () => {
  using home = temporaryFolder();
  await putKey("agent", join(home.file("data"), "pki"));
  await using server = await opcuaServer({ folder: home.file("server"), meddle: addUnusable });
  const { status, said, stdout } = await checkOnline(
    home,
    `    type: opcua
    url: "${server.url}"
    security: { mode: none }
    tags:
      - { input: temp, path: Line/Temp }
      - { input: missing, node: "nsu=${lineNamespace};s=Missing" }
      - { input: nowhere, path: Line/Nothing }
      - { input: secret, node: "ns=1;s=Secret" }
      - { input: photo, node: "ns=1;s=Photo" }
      - { input: list, node: "nsu=${lineNamespace};s=List" }
      - { input: recipe, node: "ns=1;s=Recipe" }
`,
  );
  expect(said).not.toContain("tags[0]");
  const lines = said.split("\n");
  expect(lines[0]).toBe("line: answers, 6 of 7 tags are refused, N ms");
  const at = (line: number) => lines.slice(lines.findIndex((each) => each.startsWith(`agent.yaml:${line}:`)));
  const missing = at(11);
  expect(missing[0]).toMatch(/tags\[1\]\.node {2}expected a node of the server, got BadNodeIdUnknown/);
  expect(missing[1]).toMatch(/^ +tagferry browse opc\.tcp:\S+ lists what the server has$/);
  expect(at(12)[0]).toMatch(/tags\[2\]\.path {2}expected a node of the server, got BadNoMatch/);
  expect(at(13)[0]).toMatch(
    /tags\[3\]\.node {2}expected a node that may be read, got Bad(NotReadable|UserAccessDenied)/,
  );
  expect(at(13)[1]).toContain("give the user of this source the right to read it");
  expect(at(14)[0]).toMatch(/expected a value that can be stored, got a ByteString/);
  expect(at(15)[0]).toMatch(/expected a value that can be stored, got an array, not one value; give an index/);
  expect(at(16)[0]).toMatch(/expected a number, got the text "apple pie"/);
  expect(status, stdout).toBe(69); // because the service is unreachable
});

test("check --online names each Modbus address that the device refuses, twenty at most and then a count", async () => {
  using home = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2301]);
  device.unit(1).refuse("hr", 10, 10, 2);
  device.unit(2).refuse("hr", 100, 199, 2);
  const many = Array.from({ length: 25 }, (_, i) => `{ input: m${i}, at: hr:${100 + i} }`).join(", ");
  const { said } = await checkOnline(
    home,
    `    type: modbus
    url: "${device.url}"
    devices:
      - unit: 1
        tags:
          - { input: a, at: hr:0 }
          - { input: b, at: hr:10 }
          - { input: c, at: hr:11 }
      - { unit: 2, tags: [{ input: d, at: hr:0 }, ${many}] }
`,
  );
  const lines = said.split("\n");
  expect(lines[0]).toBe("line: answers, 26 of 29 tags are refused, N ms");
  expect(lines.filter((line) => line.startsWith("agent.yaml:"))).toHaveLength(20);
  const first = lines.findIndex((line) => line.startsWith("agent.yaml:"));
  expect(lines[first]).toMatch(
    /^agent\.yaml:12:\d+ {2}.*\.at {2}expected an address of unit 1, got exception 2: illegal data address: .* for hr:10 u16$/,
  );
  expect(lines[first + 1]).toMatch(/^ +tagferry browse tcp:\S+ lists what the device has$/);
  expect(said).toContain("  and 6 more tags that are refused");
});

test("check --online names each MQTT filter that the broker denies, some or all of them", async () => {
  using home = temporaryFolder();
  await using broker = await openMqttBroker({ maySubscribe: (filter) => !filter.startsWith("secret/") });
  const source = (topics: readonly string[]) =>
    `    type: mqtt\n    url: "${broker.url}"\n    tags:\n${topics.map((topic, i) => `      - { input: "t${i}", topic: ${topic} }\n`).join("")}`;

  const some = await checkOnline(home, source(["open/a", "secret/a"]));
  expect(some.said).toMatch(/^line: answers, 1 of 2 tags is refused, N ms\n/);
  expect(some.said).toMatch(
    /agent\.yaml:10:\d+ {2}sources\.line\.tags\[1\]\.topic {2}expected a topic that may be read, got .*\((128|135)\) for secret\/a\n +let this user read/,
  );

  const all = await checkOnline(home, source(["secret/b", "secret/a"]));
  expect(all.said).toMatch(/^line: .*refused all subscriptions/);
  expect(all.said.match(/expected a topic that may be read/g)).toHaveLength(2);

  const { stdout } = await checkOnline(home, source(["open/a", "secret/a"]), ["--json"]);
  expect(JSON.parse(stdout).online[1]).toMatchObject({
    what: "line",
    ok: false,
    refusedTags: { count: 1, of: 2, first: [{ line: 10, path: "sources.line.tags[1].topic" }] },
  });
});

test("check warns of a fixed tag and a pattern with one Input ID, and test shows one of them refused", async () => {
  using home = temporaryFolder();
  await using broker = await openMqttBroker();
  await broker.publish("s/kitchen/t", "21.5", { qos: 1, retain: true });
  const { stdout } = await checkOnline(
    home,
    `    type: mqtt
    url: "${broker.url}"
    tags:
      - { input: "hall.{room}", topic: "s/{room}/t", retained: use }
      - { input: hall.kitchen, topic: s/kitchen/t, retained: use }
`,
  );
  expect(stdout).toMatch(
    /:10:\d+ {2}warning: .*gives the same Input ID as .* in line 9 for each message of s\/kitchen\/t;/,
  );
  const tested = await command(["test", "--once", "-c", home.file("agent.yaml")]);
  expect(tested.status).toBe(1);
  expect(tested.stderr).toContain("hall.kitchen");
});
