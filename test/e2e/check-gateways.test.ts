// packaging/ci/check-gateways, the step that a CI runs on a repository of configurations (docs/fleet.md).
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { has } from "../support/platform.ts";
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

type Files = Readonly<Record<string, string>>;

/** `before`: contents of a commit, with which the changes are compared. `gone`: gateways that are removed after it. */
function checked(files: Files, before?: Files, gone: readonly string[] = []) {
  using folder = temporaryFolder();
  const gateways = folder.file("gateways");
  const write = (texts: Files) => {
    for (const [gateway, text] of Object.entries(texts)) {
      mkdirSync(join(gateways, gateway), { recursive: true });
      writeFileSync(join(gateways, gateway, "tagferry.yaml"), text);
    }
  };
  if (before) {
    write(before);
    const identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
    for (const args of [
      ["init", "--quiet"],
      ["add", "."],
      [...identity, "commit", "--quiet", "-m", "before"],
    ])
      expect(spawnSync("git", args, { cwd: folder.path, encoding: "utf8" })).toMatchObject({ status: 0 });
  }
  write(files);
  for (const gateway of gone) rmSync(join(gateways, gateway), { recursive: true });
  const env = { ...process.env, TAGFERRY: `${process.execPath} ${program}` };
  const args = [script, gateways, ...(before ? ["HEAD"] : [])];
  const { status, stdout } = spawnSync("sh", args, { env, encoding: "utf8" });
  return { status, stdout };
}

test.runIf(has.shell)(
  "a repository of valid configurations passes without its secrets, and each has its checksum",
  () => {
    const { status, stdout } = checked({ gw1: configuration("gw1"), gw2: configuration("gw2") });
    expect(status).toBe(0);
    expect(stdout.match(/checksum of this configuration is [0-9a-f]{12}/g)).toHaveLength(2);
  },
);

test.runIf(has.shell)("invalid configurations fail the step, and all of them are named", () => {
  const { status, stdout } = checked({
    gw1: configuration("gw1", "uri: https://x"),
    gw2: configuration("gw2", "port: 1"),
  });
  expect(status).toBe(78);
  expect(stdout).toMatch(/gw1\/tagferry\.yaml:4:3 +service\.uri +unknown key; did you mean url\?/);
  expect(stdout).toMatch(/gw2\/tagferry\.yaml:4:3 +service\.port +unknown key/);
});

test.runIf(has.shell)(
  "with a revision, what changes for each gateway is listed, also where it was invalid or is new",
  () => {
    const before = {
      gw1: configuration("gw1"),
      gw2: configuration("gw2", "uri: https://x"),
      gw3: configuration("gw3"),
    };
    const after = {
      gw1: configuration("gw1").replace("demo.gw1", "hall.gw1").replace("service_password", "other_password"),
      gw2: configuration("gw2"),
      gw3: configuration("gw3"),
      gw4: configuration("gw4"),
    };
    const { status, stdout } = checked(after, { ...before, gw5: configuration("gw5") }, ["gw5"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^changes of gw1 since HEAD:\nsources restarted: demo$/m);
    expect(stdout).toMatch(/^ {2}demo\.gw1 → hall\.gw1$/m);
    expect(stdout).toMatch(/^changes of gw3 since HEAD:\nnothing changes$/m);
    expect(stdout).toMatch(/^gw4 is new since HEAD$/m);
    expect(stdout).toMatch(/^gw5 is gone since HEAD$/m);
    expect(stdout).not.toContain("not-the-true-value");
  },
);
