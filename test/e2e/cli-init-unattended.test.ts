// `tagferry init` without a terminal: flags or a file of answers. A missing decision is an error that names the flag.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { command } from "../support/command.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { putKey } from "../support/opcua-key.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lvg";

/** Runs commands in a folder that holds the password of the integration. A prompt for input fails the test. */
async function plant() {
  const folder = temporaryFolder();
  const data = folder.file("data");
  writeFileSync(folder.file("service_password"), "rope\n", { mode: 0o600 });
  const file = folder.file("tagferry.yaml");
  const run = (args: readonly string[], variables: Readonly<Record<string, string>> = {}) =>
    command([...args, "-c", file], { variables: { STATE_DIRECTORY: data, ...variables } });
  return {
    folder,
    file,
    data,
    run,
    init: (...args: readonly string[]) => run(["init", "--yes", "--integration", integration, ...args]),
    written: () => parse(readFileSync(file, "utf8")),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

async function meter() {
  const device = await modbusDevice();
  device.unit(3).set("hr", 5, [42]);
  for (const table of ["ir", "co", "di"] as const) device.unit(3).refuse(table, 0, 65_535, 1);
  device.unit(3).refuse("hr", 10, 65_535, 2);
  return device;
}

test("flags answer every question, and init ends with one value of each source", async () => {
  using agent = await plant();
  await using device = await meter();

  const { status, stdout, stderr, questions } = await agent.init(
    ..."--name north-gw1 --service http://127.0.0.1:8420/v1".split(" "),
    ...`--source ${device.url}?unit=3&to=20 --source-name bus1 --source simulator`.split(" "),
  );

  expect(stderr).not.toContain("tagferry:");
  expect({ status, questions }).toEqual({ status: 0, questions: [] });
  expect(stdout).toContain(`${agent.file} is written: 2 sources, 3 tags\n`);
  expect(stdout).toMatch(/^bus1 reads unit3\.hr:5 = 42 \(hr:5 u16\)$/m);
  expect(stdout).toMatch(/^demo reads demo\.\w+ = /m);
  expect(agent.written()).toMatchObject({
    agent: { name: "north-gw1" },
    include: "conf.d/*.yaml",
    service: { integration, auth: { basic: { password: "${file:service_password}" } } },
    sources: { bus1: { url: device.url, devices: [{ unit: 3, tags: [{ at: "hr:5 u16" }] }] }, demo: {} },
  });
  expect(existsSync(agent.folder.file("conf.d"))).toBe(true);
  expect((await agent.run(["check"])).status).toBe(0);
});

test("a file of answers has the same effect, and its errors name line and key", async () => {
  using agent = await plant();
  await using device = await meter();
  const answers = agent.folder.file("answers.yaml");
  writeFileSync(
    answers,
    `name: north-gw1
integration: ${integration}
passwordEnv: SERVICE_PASSWORD
sources:
  - url: ${device.url}?unit=3&to=20
    name: bus1
    passwrd: x
`,
  );
  const wrong = await agent.run(["init", "--answers", answers]);
  expect(wrong.status).toBe(2);
  expect(wrong.stderr).toContain(`${answers}:7:5`);
  expect(wrong.stderr).toContain("passwrd");
  expect(existsSync(agent.file)).toBe(false);

  writeFileSync(answers, readFileSync(answers, "utf8").replace("    passwrd: x\n", ""));
  const { status, stdout } = await agent.run(["init", "--answers", answers], { SERVICE_PASSWORD: "rope" });
  expect(stdout).toContain("bus1 reads unit3.hr:5 = 42");
  expect(status).toBe(0);
  expect(agent.written().service.auth.basic.password).toBe("${SERVICE_PASSWORD}");
});

test("an unreachable source stops init and nothing is written; --offline writes without reading the source", async () => {
  using agent = await plant();
  const there = ["--source", "mqtt://127.0.0.1:1"];

  const { status, stderr } = await agent.init(...there);

  expect(status).toBe(69);
  expect(stderr).toContain("mqtt://127.0.0.1:1: connection refused");
  expect(stderr).toContain("nothing is written");
  expect(stderr).toContain("--offline");
  expect(existsSync(agent.file)).toBe(false);
  expect(await agent.init(...there, "--offline")).toMatchObject({ status: 0 });
  expect(agent.written().sources.mqtt).toMatchObject({ url: "mqtt://127.0.0.1:1", tags: [] });
});

test("a source that refuses ends init with 77 and nothing is written; one that gives no value ends it with 1", async () => {
  using agent = await plant();
  await using broker = await openMqttBroker({ credentials: { username: "gw1", password: "right" } });
  const source = (password: string) => ["--source", broker.url, "--username", "gw1", "--source-password-env", password];
  const init = (password: string) =>
    agent.run(["init", "--yes", "--integration", integration, ...source("SOURCE_PASSWORD")], {
      SOURCE_PASSWORD: password,
    });

  expect(await init("wrong")).toMatchObject({ status: 77, stderr: expect.stringContaining("nothing is written") });
  expect(existsSync(agent.file)).toBe(false);

  expect(await init("right")).toMatchObject({ status: 1, stderr: expect.stringContaining("mqtt has no tags yet") });
  expect(existsSync(agent.file)).toBe(true);
});

test.each([
  [["--source", "http://nothing"], "--source http://nothing: must be simulator, or begin with one of mqtt://"],
  [
    ["--source", "mqtt://gw1:canary-19f0@broker:1883", "--offline"],
    "--source mqtt://***@broker:1883: name and password stand in --username and --source-password-file",
  ],
  [["--source", "simulator", "--name", "-x-"], "--name -x-: must be 1 to 64 letters"],
  [
    ["--source", "mqtt://192.0.2.1", "--username", "gw1", "--source-password-file", "service_password", "--offline"],
    "mqtt://192.0.2.1 is not encrypted: everybody on the way can read the password; use mqtts://192.0.2.1 if the broker offers it, or --allow-insecure-password to send it",
  ],
  [["--source", "mqtt://127.0.0.1:1", "--username", "gw1"], "--source-password-file or --source-password-env"],
  [
    ["--source", "mqtt://127.0.0.1:1", "--username", "gw1", "--source-password-env", "NO_SUCH"],
    "--source-password-env NO_SUCH: the environment has no such variable",
  ],
  [["--source", "simulator", "--password-file", "nowhere"], "--password-file nowhere: there is no such file"],
  [["--username", "gw1", "--source", "simulator"], "must follow the --source it belongs to"],
])("an answer that is wrong or missing stops it, and the error names the flag: %j", async (args, message) => {
  using agent = await plant();
  const { status, stderr } = await agent.init(...args);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("canary");
  expect(status).toBe(2);
  expect(existsSync(agent.file)).toBe(false);
});

test("without a password of the integration init stops and names both flags", async () => {
  using folder = temporaryFolder();
  const { status, stderr } = await command(["init", "--yes", "-c", folder.file("tagferry.yaml")]);
  expect(stderr).toContain("--password-file");
  expect(stderr).toContain("--password-env");
  expect(status).toBe(2);
});

test("a server without security is read only with --security-mode none", async () => {
  using agent = await plant();
  await putKey("agent", join(agent.data, "pki"));
  await using server = await opcuaServer({ folder: agent.folder.file("server") });

  const refused = await agent.init("--source", server.url);
  expect(refused.stderr).toContain("offers no security");
  expect(refused.stderr).toContain("--security-mode none");
  expect(refused.status).toBe(2);
  expect(existsSync(agent.file)).toBe(false);

  const { status, stdout } = await agent.init("--source", server.url, "--security-mode", "none");
  expect(stdout).toContain("opcua reads ");
  expect(status).toBe(0);
  expect(agent.written().sources.opcua.security).toEqual({ mode: "none" });
});

test("a certificate is trusted only by its thumbprint", async () => {
  using agent = await plant();
  await putKey("agent", join(agent.data, "pki"));
  await using server = await opcuaServer({ folder: agent.folder.file("server"), secure: true });

  const refused = await agent.init("--source", server.url);
  const thumbprint = /--trust ([0-9a-f]{40})/.exec(refused.stderr)?.[1] ?? "";
  expect(refused.stderr).toMatch(/subject +.+\n +valid +.+ to .+/);
  expect(thumbprint).not.toBe("");
  expect(refused.status).toBe(2);

  const other = await agent.init("--source", server.url, "--trust", "a".repeat(40));
  expect(other.stderr).toContain("the server shows another certificate");
  expect(other.status).toBe(2);
  expect(existsSync(agent.file)).toBe(false);

  const { status, stdout } = await agent.init("--source", server.url, "--trust", thumbprint);
  expect(stdout).toContain("opcua reads ");
  expect(status).toBe(0);
  expect((await agent.run(["trust", "list"])).stdout).toContain(`${thumbprint} (trusted)`);
});

test("a password is sent to a broker without TLS only with explicit consent, and never written as an OPC UA key", async () => {
  using agent = await plant();
  const broker = "--source mqtt://192.0.2.1 --username gw1 --source-password-file service_password".split(" ");

  expect(await agent.init(...broker, "--allow-insecure-password", "--offline")).toMatchObject({ status: 0 });

  expect(agent.written().sources.mqtt).toEqual({
    type: "mqtt",
    url: "mqtt://192.0.2.1",
    username: "gw1",
    password: "${file:service_password}",
    tags: [],
  });
  expect(await agent.run(["check"])).toMatchObject({ status: 0 });
});

test("a folder conf.d that is there already is not included: it may belong to another configuration", async () => {
  using agent = await plant();
  mkdirSync(agent.folder.file("conf.d"));
  writeFileSync(agent.folder.file("conf.d/other.yaml"), "sources: { demo: { type: simulator, tags: [] } }\n");
  expect((await agent.init("--source", "simulator")).status).toBe(0);
  expect(agent.written()).not.toHaveProperty("include");
});
