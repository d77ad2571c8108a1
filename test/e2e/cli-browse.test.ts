// Browsing devices before configuring them, over real protocols on loopback.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { loadConfig } from "../../src/config/load.ts";
import { command } from "../support/command.ts";
import { environmentOf, head, withPassword } from "../support/config.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { opcuaServer, user } from "../support/opcua-server.ts";
import { openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const recipeList = z.object({ recipes: z.array(z.object({ name: z.string(), what: z.string() })) });

/** Parses `yaml` as part of a source, as if the user had pasted it there. */
async function pasted(source: string, yaml: string) {
  const indented = yaml.replaceAll(/^/gm, "    ");
  const text = `${head}sources:\n  pasted:\n${source}\n${indented}\n`;
  return (await loadConfig("agent.yaml", environmentOf(withPassword, { "/site/agent.yaml": text }))).sources[0];
}

test("an OPC UA server is listed as a tree with values, and its YAML is a valid configuration", async () => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.path });
  server.set("Temp", 21.5);

  const [listed, yaml] = await Promise.all([
    command(["browse", server.url]),
    command(["browse", server.url, "--yaml"]),
  ]);

  expect(listed.status).toBe(0);
  expect(listed.stdout).toMatch(/^Line +nsu=/m);
  expect(listed.stdout).toMatch(/^ {2}Temp +21\.5 °C +Double +nsu=urn:tagferry:test:line;s=Temp$/m);
  expect(listed.stdout).toMatch(/^ {2}List +Double\[\] +nsu=/m);
  expect(listed.stderr).toMatch(/nodes found/);
  const source = await pasted(`    type: opcua\n    url: ${server.url}`, yaml.stdout);
  expect(source?.rules.map(({ input }) => input)).toContain("Line.Temp");
});

test("the endpoints of a server are listed with their security, and secure ones are browsed once the certificate is compared", async () => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.path, secure: true });
  const endpoints = await command(["browse", server.url, "--endpoints"]);
  expect(endpoints.stdout).toMatch(/^ {2}none, None +.*username.*  no security/m);
  expect(endpoints.stdout).toMatch(/^ {2}signAndEncrypt, Aes256_Sha256_RsaPss +.*opc\.tcp:\/\/127.*  [0-9a-f]{40}$/m);
  const secure = ["browse", server.url, "--security-mode", "signAndEncrypt", "--policy", "Basic256Sha256"];
  const refused = await command(secure);
  expect(refused.status).toBe(77);
  const thumbprint = /tagferry browse … --trust ([0-9a-f]{40})$/m.exec(refused.stderr)?.[1] ?? "";
  const { status, stdout } = await command([...secure, "--trust", thumbprint]);
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("Temp") });
  expect((await command([...secure.slice(0, 2), "--policy", "Basic256Sha256"])).stderr).toContain(
    "needs --security-mode",
  );
});

test("a source of a configuration is browsed with its login, its security and the agent's certificate", async () => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.file("server"), secure: true, anonymous: false });
  writeFileSync(folder.file("password"), user.password);
  const source = `url: "${server.url}", username: ${user.name}, password: ${JSON.stringify(`\${file:${folder.file("password")}}`)}`;
  const text = `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "x" } } }
sources: { line: { type: opcua, ${source}, tags: [{ input: a, path: Line/Temp }] } }
`;
  const file = folder.file("agent.yaml");
  writeFileSync(file, text);
  const look = () => command(["browse", "-c", file, "--source", "line"]);
  const stateDir = folder.file("data/sources/line");
  const login = { username: user.name, password: user.password };
  const agent = { stateDir, sharedDir: folder.file("data"), options: { url: server.url, ...login }, tags: [] };
  await expect(openOpcuaSource(agent)).rejects.toThrow("not trusted");
  expect(await look()).toMatchObject({ status: 77, stderr: expect.stringContaining("tagferry trust accept") });
  await (await openTrusting(agent))[Symbol.asyncDispose]();
  expect(await look()).toMatchObject({ status: 0, stdout: expect.stringMatching(/Temp +20 °C/) });
  const wrong = await command(["browse", "-c", file, "--source", "lime"]);
  expect(wrong.stderr).toContain("has no source lime; it has line");
});

test("a broker is browsed with the given credentials, and a text becomes a comment in the YAML", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("password"), "gw1-password\n");
  await using broker = await openMqttBroker({ credentials: { username: "gw1", password: "gw1-password" } });
  for (const [topic, payload] of [
    ["hall/env", '{"t":21.5,"state":"ok"}'],
    ["hall/\u001b[2Jlamp", "1"],
  ] as const)
    await broker.publish(topic, payload, { retain: true });
  const stop = new AbortController();
  const credentials = ["--username", "gw1", "--password-file", folder.file("password")];
  const listening = command(["browse", broker.url, "--yaml", ...credentials], { signal: stop.signal });
  await eventually(() => broker.clients.find((client) => broker.subscriptions(client).includes("#")));
  await broker.publish("hall/last", "3");
  // ^C ends the listening and shows the values received so far.
  stop.abort(new Error("^C"));
  const { status, stdout } = await listening;

  expect(status).toBe(0);
  expect(stdout).toContain("input: hall.env.t");
  expect(stdout).toMatch(/# - \{ input: hall\.env\.state.*# a text/);
  expect(stdout).not.toContain("\u001b");
  expect(parse(stdout)).toMatchObject({
    tags: expect.arrayContaining([expect.objectContaining({ topic: "hall/env" })]),
  });

  const nobody = await command(["browse", broker.url]);
  expect(nobody).toMatchObject({ status: 77, stderr: expect.stringContaining("--username NAME --password-file FILE") });
  const refused = await command(["browse", broker.url, "--username", "gw1"]);
  expect(refused).toMatchObject({
    status: 77,
    stderr: expect.stringContaining("check the credentials: user name, password"),
  });
});

test("a Modbus device is listed with the values of its registers, and its YAML is ordered by unit", async () => {
  await using device = await modbusDevice();
  device.unit(3).set("hr", 5, [42]);
  for (const table of ["ir", "co", "di"] as const) device.unit(3).refuse(table, 0, 65_535, 1);
  device.unit(3).refuse("hr", 10, 65_535, 2);
  const url = `${device.url}?unit=3&to=20`;
  const listed = await command(["browse", url]);
  expect(listed.stdout).toMatch(/^unit 3 answers/m);
  expect(listed.stdout).toMatch(/^ {2}hr:5 \(40006\) +42 +hr:5 u16$/m);
  const json = await command(["browse", url, "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    url,
    type: "modbus",
    nodes: expect.arrayContaining([
      expect.objectContaining({ address: "hr:5 u16", value: 42, tag: { unit: 3, at: "hr:5 u16" } }),
    ]),
  });
  const { stdout } = await command(["browse", url, "--yaml"]);
  expect(stdout).toBe("devices:\n  - unit: 3\n    tags:\n      - { input: unit3.hr:5, at: hr:5 u16 }\n");
  const source = await pasted(`    type: modbus\n    url: ${device.url}`, stdout);
  expect(source?.tags).toHaveLength(1);
});

test("a Modbus device that answers for every unit number is listed once, with a remark", async () => {
  await using device = await modbusDevice();
  for (let unit = 0; unit <= 255; unit++) {
    device.unit(unit).set("hr", 5, [42]);
    for (const table of ["ir", "co", "di"] as const) device.unit(unit).refuse(table, 0, 65_535, 1);
  }
  const { status, stdout } = await command(["browse", `${device.url}?to=20`]);
  expect(status).toBe(0);
  expect(stdout.match(/^unit \d+ answers/gm)).toEqual(["unit 1 answers"]);
  expect(stdout).toContain("it answers for every unit number, so the others are left out; ?unit=2 looks at unit 2");
  expect(device.requests.some(({ unit }) => unit === 2)).toBe(false);
  const { stdout: yaml } = await command(["browse", `${device.url}?to=20`, "--yaml"]);
  expect(yaml).toBe("devices:\n  - unit: 1\n    tags:\n      - { input: unit1.hr:5, at: hr:5 u16 }\n");
});

test("a Modbus source of a configuration is browsed as configured", async () => {
  await using device = await modbusDevice();
  device.unit(3).set("hr", 5, [42]);
  for (const table of ["ir", "co", "di"] as const) device.unit(3).refuse(table, 0, 65_535, 1);
  using folder = temporaryFolder();
  const file = folder.file("agent.yaml");
  const source = `{ type: modbus, url: "${device.url}", maxRegisters: 7, tags: [{ input: a, at: "hr:5", every: 1s }] }`;
  writeFileSync(file, `${head.replace(/\$\{[^}]*\}/g, "x")}sources: { bus: ${source} }\n`);
  const found = await command(["browse", `${device.url}?unit=3&to=20`, "-c", file, "--source", "bus"]);
  expect(found).toMatchObject({ status: 0, stdout: expect.stringMatching(/hr:5 \(40006\) +42/) });
  expect(Math.max(...device.requests.filter((each) => each.function === 3).map(({ count }) => count))).toBe(7);

  const stop = new AbortController();
  const all = command(["browse", "-c", file, "--source", "bus"], { signal: stop.signal });
  const before = device.requests.length;
  await eventually(() => device.requests.length > before);
  stop.abort(new Error("^C"));
  expect((await all).stderr).not.toContain("no address");
});

test("the identification of a Modbus device is in the list, in the JSON, and a comment in the YAML", async () => {
  await using device = await modbusDevice();
  device.unit(3).set("hr", 5, [42]);
  for (const table of ["ir", "co", "di"] as const) device.unit(3).refuse(table, 0, 65_535, 1);
  device.unit(3).identity = { 0: "Acme", 1: "PM-53", 2: "V2.6\n- { input: x }" };
  device.unit(3).serverId = Uint8Array.from([7, 0xff]);
  const url = `${device.url}?unit=3&to=20`;

  const [listed, json, yaml] = await Promise.all(
    [[], ["--json"], ["--yaml"]].map((how) => command(["browse", url, ...how])),
  );

  expect(listed?.stdout).toMatch(/^ {2}VendorName +Acme +unit 3$/m);
  expect(JSON.parse(json?.stdout ?? "")).toMatchObject({
    nodes: expect.arrayContaining([
      { address: "unit 3", name: "server id", depth: 1, value: "07 FF", signal: {}, tag: { unit: 3 } },
    ]),
  });
  expect(yaml?.stdout).toContain("    tags:\n      # VendorName: Acme\n      # ProductCode: PM-53\n");
  expect(yaml?.stdout).toContain("      # MajorMinorRevision: V2.6 - { input: x }\n");
  const source = await pasted(`    type: modbus\n    url: ${device.url}`, yaml?.stdout ?? "");
  expect(source?.tags).toHaveLength(1);
});

test("a value read off the display finds the address in the form used by a tag", async () => {
  await using device = await modbusDevice();
  device.unit(5).set("hr", 99, [2314, 0x2065, 0x47f1]);
  device.unit(5).refuse("ir", 0, 65_535, 2);
  const at = ["probe", device.url, "--unit", "5", "--at", "hr:100"];
  const found = await command([...at, "--expect", "231.4"]);
  expect(found.status).toBe(0);
  expect(found.stdout.split("\n")[1]).toBe('  at: "hr:99 u16", scale: 0.1   2314');
  const all = await command([...at, "--json"]);
  expect(JSON.parse(all.stdout)).toMatchObject({
    unit: 5,
    rows: expect.arrayContaining([expect.objectContaining({ at: "hr:100 u16", value: 0x2065, matches: false })]),
  });
  const none = await command([...at, "--expect", "5555.5"]);
  expect(none).toMatchObject({ status: 1, stdout: expect.stringContaining("nothing at hr:100") });
  const moved = await command([...at, "--expect", "2310"]);
  expect(moved).toMatchObject({ status: 0, stdout: expect.stringContaining("near 2310, the likeliest first") });
  expect(moved.stdout.split("\n")[1]).toMatch(/^ {2}at: "hr:99 u16" +2314 +now 2314$/);
  const other = await command([...at, "--expect", "2400"]);
  expect(other.status).toBe(1);
  // Shows only the most likely interpretations.
  expect(other.stdout.split("\n")[1]).toMatch(/^ {2}hr:99 u16 +2314$/);
  expect(other.stdout.split("\n")).toHaveLength(13);
  const beyond = await command(["probe", device.url, "--unit", "5", "--at", "ir:100"]);
  expect(beyond).toMatchObject({ status: 69, stderr: expect.stringContaining("tagferry browse shows which") });
});

test("a device that echoes another unit is reported, and is browsed and probed with --reply-unit any", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2292]);
  for (const table of ["ir", "co", "di"] as const) device.unit(1).refuse(table, 0, 65_535, 1);
  device.echoUnit = 0;
  const browsed = ["browse", `${device.url}?unit=1&to=10`];
  const probed = ["probe", device.url, "--at", "hr:0", "--expect", "229.2"];

  for (const args of [browsed, probed]) {
    const { status, stderr } = await command(args);
    expect({ status, stderr }).toEqual({
      status: 69,
      stderr: expect.stringContaining("unit 0 instead of 1 (--reply-unit any"),
    });
  }
  expect((await command([...browsed, "--reply-unit", "any"])).stdout).toMatch(/hr:0 \(40001\) +2292/);
  expect((await command(["browse", `${device.url}?unit=1&to=10&replyUnit=any`])).stdout).toMatch(
    /hr:0 \(40001\) +2292/,
  );
  expect((await command([...probed, "--reply-unit", "any"])).stdout).toContain('at: "hr:0 u16", scale: 0.1');
  expect((await command(["browse", "mqtt://127.0.0.1:1", "--reply-unit", "any"])).status).toBe(2);
});

test("an unreachable device gives exit status 69, and wrong arguments 2", async () => {
  for (const url of ["tcp://127.0.0.1:1", "mqtt://127.0.0.1:1", "opc.tcp://127.0.0.1:1"]) {
    const { status, stderr } = await command(["browse", url]);
    expect({ url, status }).toEqual({ url, status: 69 });
    expect(stderr).toContain("check address, port, cable and firewall");
  }
  for (const args of [
    ["browse", "http://127.0.0.1"],
    ["browse", "nonsense"],
    ["browse", "tcp://127.0.0.1:1?unit=x"],
    ["browse", "mqtt://127.0.0.1:1", "--password-file", "/nowhere"],
    ["probe", "tcp://127.0.0.1:1", "--at", "7"],
    ["probe", "tcp://127.0.0.1:1", "--at", "hr:7", "--expect", "231,4"],
    ["probe", "tcp://127.0.0.1:1", "--at", "hr:7", "--unit", "300"],
    ["probe", "tcp://127.0.0.1:1"],
  ]) {
    const { status, stderr } = await command(args);
    expect({ args, status, stderr }).toEqual({ args, status: 2, stderr: expect.stringMatching(/./) });
  }
  const bare = await command(["browse", "10.0.0.5"]);
  expect(bare.stderr).toContain("as in mqtt://10.0.0.5:1883, tcp://10.0.0.5:502 (Modbus) or opc.tcp://10.0.0.5:4840");
  const withUser = await command(["browse", "mqtt://gw1:canary-1@127.0.0.1:1"]);
  expect(withUser).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("--username NAME --password-file FILE"),
  });
  expect(withUser.stderr).not.toContain("canary");
});

test.each([
  ["browse", "gw:canary-5c1e@broker"],
  ["browse", "canary-5c1e@broker"],
  ["browse", "mqtt://gw:canary-5c1e@broker"],
  ["status", "--url", "gw:canary-5c1e@host"],
  ["init", "--yes", "-c", "/nowhere/x.yaml", "--service", "gw:canary-5c1e@host"],
])("an address with a password in it is not repeated: %s %s %s", async (...args) => {
  const { status, stdout, stderr } = await command(args);
  expect(status).not.toBe(0);
  expect(stdout + stderr).not.toContain("canary-5c1e");
});

test("recipes are listed by name and printed as they are in config/recipes, without a device", async () => {
  const { status, stdout } = await command(["browse", "--recipe", "--json"]);
  expect(status).toBe(0);
  const { recipes } = recipeList.parse(JSON.parse(stdout));
  const files = join(import.meta.dirname, "../../config/recipes");
  expect(recipes.map(({ name }) => name)).toEqual(readdirSync(files).toSorted());
  expect((await command(["browse", "--recipe"])).stdout).toMatch(/^ {2}shelly +Shelly Plus/m);
  for (const { name, what } of recipes) {
    const printed = await command(["browse", "--recipe", name]);
    expect(printed.stdout).toBe(readFileSync(join(files, name, "recipe.yaml"), "utf8"));
    expect(printed.stdout).toContain(`# ${what}\n`);
  }
  expect(await command(["browse", "--recipe", "toaster"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Allowed choices are beckhoff-twincat"),
  });
  expect(await command(["browse", "tcp://127.0.0.1", "--recipe", "shelly"])).toMatchObject({
    status: 2,
    stderr: "tagferry: --recipe looks at no device: leave out tcp://127.0.0.1, or --recipe\n",
  });
});
