// What a support bundle contains, and the secrets that it must never contain.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { head } from "../support/config.ts";
import { eventually } from "../support/eventually.ts";
import { expectMode, has } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const canaries = {
  service: "canary-service-1b",
  mqtt: "canary-mqtt/2c+",
  token: "canary-http-token-3d",
  literal: "canary-literal-4e",
};

function configuration(folder: string): string {
  return `version: 1   # an old one was canary-comment-5f
agent: { name: gw1, dataDir: ${folder}/data }
service:
  url: "http://127.0.0.1:1/v1"
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${SERVICE_PASSWORD}" } }
http: { listen: "127.0.0.1:0", token: "${canaries.token}" }
sources:
  waves: { type: simulator, tags: [{ input: wave.sine }] }
  hall: { type: mqtt, url: "mqtt://127.0.0.1:1", username: me, password: "\${MQTT_PASSWORD}", tags: [{ input: h, topic: h }] }
  line: { type: mqtt, url: "mqtt://127.0.0.1:2", username: me, password: ${canaries.literal}, tags: [{ input: l, topic: "${canaries.literal}/l" }] }
`;
}

/** The files of an archive by their names, without the folder. */
function unpacked(archive: string, into: string): ReadonlyMap<string, string> {
  const { status, stderr } = spawnSync("tar", ["-xzf", archive, "-C", into, "--strip-components=1"]);
  expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
  return new Map(readdirSync(into).map((name) => [name, readFileSync(join(into, name), "utf8")]));
}

// The password of `line` also occurs in a topic, where it can only be recognised by its value.
test.runIf(has.shell)("the bundle has everything except secrets in any form", async () => {
  using folder = temporaryFolder();
  using into = temporaryFolder();
  const variables = { SERVICE_PASSWORD: canaries.service, MQTT_PASSWORD: canaries.mqtt };
  await using agent = await startAgent({
    folder: folder.path,
    configuration: configuration(folder.path),
    env: variables,
  });
  await eventually(async () => (await agent.status()).sources.every(({ error, points }) => error ?? points > 0));
  const archive = folder.file("bundle.tar.gz");

  const args = ["support-bundle", "-c", folder.file("tagferry.yaml"), "--url", agent.page, "-o", archive];
  const { status, stdout, progress } = await command(args, { variables });

  expect(status).toBe(0);
  expect(stdout).toMatch(/^\S+bundle\.tar\.gz: \d+ files, /);
  expect(progress.at(-1)).toBeUndefined();
  expectMode(archive, 0o600);
  const files = unpacked(archive, into.path);
  expect([...files.keys()]).toEqual(
    expect.arrayContaining(["about.txt", "buffer.json", "check.json", "config.yaml", "config-effective.json"]),
  );
  expect(files.get("log.ndjson")).toContain('"msg":"ready"');
  expect(files.get("metrics.txt")).toContain("tagferry_source_online");
  expect(JSON.parse(files.get("status.json") ?? "")).toMatchObject({ agent: { name: "gw1" } });
  expect(JSON.parse(files.get("versions.json") ?? "")).toHaveProperty("node.v8");
  expect(files.get("config.yaml")).toContain("token: ***");
  const everything = gunzipSync(readFileSync(archive)).toString("latin1");
  const control = readFileSync(folder.file("data/control.token"), "utf8").trim();
  for (const secret of [...Object.values(canaries), "canary-comment-5f", control])
    for (const form of [secret, encodeURIComponent(secret), btoa(secret), btoa(secret).replace(/=+$/, "")])
      expect(everything.includes(form), form).toBe(false);
  expect(everything).not.toMatch(/canary/i);
});

test.runIf(has.shell)("status and metrics of an agent that asks for a token are in the bundle", async () => {
  using folder = temporaryFolder();
  using into = temporaryFolder();
  const variables = { SERVICE_PASSWORD: canaries.service, MQTT_PASSWORD: canaries.mqtt };
  const readToken = "canary-read-token-7h";
  const yaml = configuration(folder.path).replace("http: {", `http: { readToken: ${readToken},`);
  await using agent = await startAgent({ folder: folder.path, configuration: yaml, env: variables });
  const archive = folder.file("bundle.tar.gz");
  const args = ["support-bundle", "-c", folder.file("tagferry.yaml"), "--url", agent.page, "-o", archive];
  expect(await command(args, { variables })).toMatchObject({ status: 0 });
  const files = unpacked(archive, into.path);
  expect(JSON.parse(files.get("status.json") ?? "")).toMatchObject({ agent: { name: "gw1" } });
  expect(files.get("metrics.txt")).toContain("tagferry_source_online");
  expect([...files.values()].join("")).not.toContain(readToken);
});

test.runIf(has.shell)(
  "without a running agent and with an invalid file the bundle has what exists and names what is missing",
  async () => {
    using folder = temporaryFolder();
    using into = temporaryFolder();
    const file = folder.file("tagferry.yaml");
    writeFileSync(file, "version: 1\nservice: { password: canary-9c }\n");
    const archive = folder.file("bundle.tar.gz");
    const args = ["support-bundle", "-c", file, "--url", "http://127.0.0.1:1", "-o", archive];
    const { status, stdout } = await command(args);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^ {2}not in it: status\.json, health\.json, metrics\.txt, log\.ndjson: no agent answers at http:\/\/127\.0\.0\.1:1/m,
    );
    const files = unpacked(archive, into.path);
    expect(files.get("check.json")).toContain('"ok": false');
    expect(files.get("about.txt")).toContain("Not in it:");
    expect([...files.values()].join("")).not.toContain("canary");

    const right = folder.file("right.yaml");
    writeFileSync(right, `${head.replace(/\$\{[^}]*\}/g, "x")}agent: { dataDir: ${folder.file("none")} }\n`);
    const unused = await command(["support-bundle", "-c", right, "-o", folder.file("unused.tar.gz")]);
    // One line. The remedy is shown only by `buffer stat` itself.
    expect(unused.stdout).toMatch(/^ {2}not in it: buffer\.json: \/\S+ holds no buffer: there is no such folder$/m);

    const again = await command(args);
    expect(again).toMatchObject({ status: 1, stderr: `tagferry: ${archive} cannot be written: it is there already\n` });
    const nowhere = await command([...args.slice(0, -1), folder.file("none/bundle.tar.gz")]);
    expect(nowhere).toMatchObject({
      status: 1,
      stderr: `tagferry: ${folder.file("none/bundle.tar.gz")} cannot be written: there is no folder ${folder.file("none")}\n`,
    });
  },
);

test("without a configuration and an agent no archive is written, and the error shows how to name one", async () => {
  using folder = temporaryFolder();
  const archive = folder.file("bundle.tar.gz");
  const args = ["support-bundle", "-c", folder.file("none.yaml"), "-o", archive];
  expect(await command(args)).toMatchObject({
    status: 78,
    stdout: "",
    stderr: expect.stringMatching(
      /none\.yaml:1:1 {2}cannot be read: there is no such file\n +correct the name of the file/,
    ),
  });
  expect(await command([...args, "--url", "http://127.0.0.1:1"])).toMatchObject({
    status: 69,
    stderr: expect.stringContaining("no agent answers at http://127.0.0.1:1"),
  });
  expect(readdirSync(folder.path)).toEqual([]);
});
