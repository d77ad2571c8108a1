// packaging/ci/check-gateways, the step that a CI runs on a repository of configurations (docs/fleet.md).
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const script = resolve(import.meta.dirname, "../../packaging/ci/check-gateways");

function configuration(name: string, service = "url: https://service.example.com/v1"): string {
  return `version: 1
agent: { name: ${name} }
service:
  ${service}
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${credential:service_password}" } }
sources: { demo: { type: simulator, tags: [{ input: demo.${name} }] } }
`;
}

function checked(files: Readonly<Record<string, string>>) {
  using folder = temporaryFolder();
  for (const [gateway, text] of Object.entries(files)) {
    mkdirSync(folder.file(gateway));
    writeFileSync(join(folder.path, gateway, "tagferry.yaml"), text);
  }
  const env = { ...process.env, TAGFERRY: `${process.execPath} ${program}` };
  const { status, stdout } = spawnSync("sh", [script, folder.path], { env, encoding: "utf8" });
  return { status, stdout };
}

test("a repository of valid configurations passes without its secrets, and each has its checksum", () => {
  const { status, stdout } = checked({ gw1: configuration("gw1"), gw2: configuration("gw2") });
  expect(status).toBe(0);
  expect(stdout.match(/checksum of this configuration is [0-9a-f]{12}/g)).toHaveLength(2);
});

test("invalid configurations fail the step, and all of them are named", () => {
  const { status, stdout } = checked({
    gw1: configuration("gw1", "uri: https://x"),
    gw2: configuration("gw2", "port: 1"),
  });
  expect(status).toBe(78);
  expect(stdout).toMatch(/gw1\/tagferry\.yaml:4:3 +service\.uri +unknown key; did you mean url\?/);
  expect(stdout).toMatch(/gw2\/tagferry\.yaml:4:3 +service\.port +unknown key/);
});
