// First use: a few questions, or the result of browsing, become a valid configuration.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { command } from "../support/command.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { expectMode } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lvg";

async function checked(file: string) {
  const { status, stdout } = await command(["check", "-c", file]);
  return { status, stdout };
}

test("a few answers become a commented file that passes check, with the password in a separate file", async () => {
  using folder = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(3).set("hr", 5, [42]);
  for (const table of ["ir", "co", "di"] as const) device.unit(3).refuse(table, 0, 65_535, 1);
  device.unit(3).refuse("hr", 10, 65_535, 2);
  const file = folder.file("tagferry.yaml");

  const { status, stdout, stderr, questions } = await command(["init", "-c", file], {
    answers: [
      "-nameless-",
      "north-gw1",
      "",
      "no id",
      integration,
      "",
      "canary-4e21",
      "http://nothing",
      `${device.url}?to=20`,
      "3",
      "y",
      "mqtt://127.0.0.1:1",
      "gw1",
      "canary-77aa",
      "y",
      "simulator",
      "",
    ],
  });

  expect({ status, stdout: stdout.replace(/(?<=demo\.sine = )\S+/, "<value>") }).toEqual({
    status: 0,
    stdout: `${file} is written: 3 sources, 3 tags
modbus reads unit3.hr:5 = 42 (hr:5 u16)
demo reads demo.sine = <value> °C (sine)
next: tagferry check -c ${file} --online, then tagferry run -c ${file}
`,
  });
  expect(stderr).toContain("  must be 1 to 64 letters, digits, - _ and .\n");
  expect(stderr).toContain("  must be an Integration ID: 20 characters of a-v and 0-9\n");
  expect(stderr).toContain("  must be simulator, or begin with one of mqtt://");
  // The address refuses connections. `init` shows the error and writes the source nevertheless.
  expect(stderr).toContain("127.0.0.1:1");
  expect(stderr).toContain("mqtt has no tags yet");
  expect(questions.filter((question) => question.endsWith("(hidden)"))).toHaveLength(2);
  const text = readFileSync(file, "utf8");
  expect(text.split("\n")[0]).toBe("# yaml-language-server: $schema=./tagferry.schema.json");
  expect(text).not.toContain("canary");
  expect(parse(text)).toMatchObject({
    agent: { name: "north-gw1" },
    service: { integration, auth: { basic: { password: "${file:service_password}" } } },
    sources: {
      modbus: { url: device.url, devices: [{ unit: 3, tags: [{ at: "hr:5 u16" }] }] },
      mqtt: { username: "gw1", password: "${file:mqtt_password}", tags: [] },
      demo: { type: "simulator" },
    },
  });
  expect(readFileSync(folder.file("service_password"), "utf8")).toBe("canary-4e21\n");
  expectMode(folder.file("mqtt_password"), 0o600);
  expect(JSON.parse(readFileSync(folder.file("tagferry.schema.json"), "utf8"))).toHaveProperty("$defs");
  expect(await checked(file)).toMatchObject({ status: 0, stdout: expect.stringContaining("is valid: 3 sources") });
  // The commented-out line must be valid as well.
  writeFileSync(file, text.replace("  # signal:", "  signal:"));
  expect(await checked(file)).toMatchObject({ status: 0 });
  expect(readFileSync(file, "utf8")).toContain("\n  signal: { labels:");
});

test("the result of browse --json becomes a file that passes check; several devices share no Input ID", async () => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.path });
  const found = (await command(["browse", server.url, "--json"])).stdout;
  const file = folder.file("site.yaml");

  const { status, stdout } = await command(["init", "-c", file, "--integration", integration], {
    stdin: `${found}${found}`,
  });

  expect(status).toBe(0);
  expect(stdout).toContain("2 sources, ");
  expect(stdout).toContain("service_password is empty: put the password into it");
  expect(Object.keys(parse(readFileSync(file, "utf8")).sources)).toEqual(["opcua", "opcua2"]);
  expect(await checked(file)).toMatchObject({ status: 0 });
});

test("no file is overwritten, and none is written before the last answer", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(folder.file("service_password"), "the one before\n");
  const broken = await command(["init", "-c", file], { answers: ["gw1", "", integration, ""] });
  expect(broken).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("the input ended before the last answer"),
  });
  expect(existsSync(file)).toBe(false);

  expect(await command(["init", "-c", file], { answers: ["gw1", "", integration, "", ""] })).toMatchObject({
    status: 0,
  });
  expect(readFileSync(folder.file("service_password"), "utf8")).toBe("the one before\n");
  expect(await checked(file)).toMatchObject({ status: 0 });

  writeFileSync(file, "mine");
  const again = await command(["init", "-c", file], { answers: [] });
  expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining("is there already and stays as it is") });
  expect(readFileSync(file, "utf8")).toBe("mine");
});

test.each([
  ["a folder that is not there", "none/gw1.yaml", /gw1\.yaml cannot be written: there is no folder .*none\n$/],
  [
    "a file in place of the folder",
    "file/gw1.yaml",
    /gw1\.yaml cannot be written: a part of its path is not a folder\n$/,
  ],
])("a file that cannot be written is named with the reason: %s", async (_, name, said) => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("file"), "");
  const args = ["init", "--yes", "--password-env", "SECRET", "-c", folder.file(name)];
  const { status, stderr } = await command(args, { variables: { SECRET: "s" } });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(said) });
});

test.for(["", "{}", "devices:\n  - unit: 1\n", '{"url":"x","type":"mqtt"}'])(
  "standard input that is nothing browsed is wrong use: %j",
  async (stdin) => {
    using folder = temporaryFolder();
    const file = folder.file("tagferry.yaml");
    const { status, stderr } = await command(["init", "-c", file], { stdin });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr:
        "tagferry: standard input is neither a terminal nor what tagferry browse URL --json prints; --yes asks nothing\n",
    });
    expect(existsSync(file)).toBe(false);
    expect(existsSync(dirname(file))).toBe(true);
  },
);

test("names of nodes are quoted safely, and texts become comments", async () => {
  using folder = temporaryFolder();
  const node = { depth: 0, signal: {}, value: "on", name: "lamp" };
  const topic = 'a"b: #\n- { input: evil, topic: x }';
  const stdin = JSON.stringify(
    {
      url: "mqtt://***@broker:1883",
      type: "mqtt",
      nodes: [
        { ...node, address: topic, tag: { topic, value: "$.t" } },
        { ...node, address: "n", value: "9007199254740993", tag: { topic: "n" } },
      ],
    },
    undefined,
    2,
  );
  const file = folder.file("tagferry.yaml");
  expect(await command(["init", "-o", file], { stdin })).toMatchObject({ status: 0 });
  expect(parse(readFileSync(file, "utf8")).sources).toEqual({
    mqtt: { type: "mqtt", url: "mqtt://broker:1883", tags: [expect.objectContaining({ topic: "n" })] },
  });
  // npm sets this variable where the program is started with an npm script of the repository.
  const variables = { npm_lifecycle_event: "tagferry" };
  const cloned = await command(["init", "-c", folder.file("cloned.yaml")], { stdin, variables });
  expect(cloned.stdout).toContain("\nnext: npm run tagferry -- check -c ");
  const printed = await command(["init", "-c", "-"], { stdin });
  expect(printed.stdout).toContain("    type: mqtt\n");
});

test("for a broker with TLS init asks for the authority of its certificate", async () => {
  using folder = temporaryFolder();
  const identity = (name: string) => readFileSync(join(import.meta.dirname, "../fixtures/tls", name));
  await using broker = await openMqttBroker({ tls: { cert: identity("broker.pem"), key: identity("broker-key.pem") } });
  writeFileSync(folder.file("plant-ca.pem"), identity("ca.pem"));
  const file = folder.file("tagferry.yaml");
  const answers = ["gw1", "", "c8ktonqsahsmemfs7lvg", "", "secret", broker.url, "plant-ca.pem", "", "n", ""];

  const { status, questions } = await command(["init", "-c", file], {
    variables: { STATE_DIRECTORY: folder.file("data") },
    answers,
  });

  expect(status).toBe(0);
  expect(questions).toContainEqual(expect.stringContaining("PEM file with the certificate authority of the broker"));
  expect(parse(readFileSync(file, "utf8")).sources.mqtt).toMatchObject({
    url: broker.url,
    caFile: folder.file("plant-ca.pem"),
  });
});

test("before a password is sent over an unencrypted connection, init asks for consent", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  const service = ["gw1", "", integration, "", "canary-4e21"];

  const { questions, stderr } = await command(["init", "--offline", "-c", file], {
    answers: [...service, "mqtt://192.0.2.1", "gw1", "n", ""],
  });

  expect(questions.at(-2)).toContain("Send it all the same? y or n");
  expect(stderr).toContain(
    "The source is written without a login; if the broker offers TLS, write url: mqtts://192.0.2.1",
  );
  expect(parse(readFileSync(file, "utf8")).sources.mqtt).toEqual({ type: "mqtt", url: "mqtt://192.0.2.1", tags: [] });
});
