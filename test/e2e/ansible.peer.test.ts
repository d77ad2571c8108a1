// The Ansible role of docs/fleet.md, applied to an agent on this machine in temporary folders.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import type { Status } from "../../src/agent/status/status.ts";
import { nodeFlags } from "../../src/cli/shared/node-flags.ts";
import { startAgent } from "../support/agent-process.ts";
import { program } from "../support/program.ts";
import { pythonWith } from "../support/python.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const role = resolve(import.meta.dirname, "../../packaging/ansible");
const secret = "canary-credential-7c";
const readToken = "canary-read-0123456789";

test("the role hands over files and credentials, reloads, checks, and lets nothing invalid through", async () => {
  using folder = temporaryFolder();
  const { path } = folder;
  const etc = folder.file("etc");
  for (const name of ["etc", "gateways/gw1/conf.d"]) mkdirSync(folder.file(name), { recursive: true });
  const configuration = (name: string) => `version: 1
agent: { name: gw1, dataDir: ${path}/data, ownSignals: off }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${credential:service_password}" } } }
http: { listen: "127.0.0.1:0", readToken: "\${credential:read_token}" }
include: conf.d/*.yaml
sources: { ${name}: { type: simulator, tags: [{ input: ${name}.sine }] } }
`;
  const file = folder.file("etc/tagferry.yaml");
  mkdirSync(`${etc}/credentials`, { mode: 0o700 });
  mkdirSync(`${etc}/conf.d`);
  writeFileSync(`${etc}/credentials/service_password`, secret);
  writeFileSync(`${etc}/credentials/read_token`, readToken);
  const env = { CREDENTIALS_DIRECTORY: `${etc}/credentials` };
  await using agent = await startAgent({ folder: etc, configuration: configuration("first"), env });
  const tagferry = folder.file("tagferry");
  writeFileSync(tagferry, `#!/bin/sh\nexec ${process.execPath} ${nodeFlags.join(" ")} ${program} "$@"\n`, {
    mode: 0o755,
  });
  // Under systemd, changed credentials would need a restart. Here the process reads them from a folder, so a reload
  // is enough.
  const restart = folder.file("restart");
  const restarts = folder.file("restarts");
  writeFileSync(restart, `#!/bin/sh\necho x >> ${restarts}\nexec ${tagferry} reload -c ${file} --url ${agent.page}\n`, {
    mode: 0o755,
  });
  const python = await pythonWith("ansible-core==2.19.14");
  const values = {
    ansible_become: false,
    tagferry_owner: String(process.getuid?.()),
    tagferry_group: String(process.getgid?.()),
    tagferry_credentials: { service_password: secret, read_token: readToken },
    tagferry_folder: etc,
    tagferry_command: tagferry,
    tagferry_reload: `${tagferry} reload --url ${agent.page} -c ${file}`,
    tagferry_restart: restart,
    tagferry_unit: folder.file("unit"),
    tagferry_daemon_reload: "true",
    tagferry_page: agent.page,
    tagferry_delay: 1,
  };
  const sources = async () => {
    const answer = await fetch(`${agent.page}/api/status`, { headers: { authorization: `Bearer ${readToken}` } });
    return ((await answer.json()) as Status).sources.map(({ name }) => name);
  };
  const inventory = "[gateways]\ngw1 ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n";
  writeFileSync(folder.file("inventory"), inventory);
  const roll = async (credentials = values.tagferry_credentials) => {
    writeFileSync(folder.file("values.json"), JSON.stringify({ ...values, tagferry_credentials: credentials }));
    const args = [
      "-m",
      "ansible",
      "playbook",
      "-i",
      folder.file("inventory"),
      join(role, "site.yaml"),
      "-e",
      `@${folder.file("values.json")}`,
    ];
    const options = { env: { ...process.env, ...env, ANSIBLE_HOME: folder.file("ansible"), ANSIBLE_NOCOLOR: "1" } };
    return await new Promise<{ failed: boolean; output: string }>((done) => {
      execFile(python, args, options, (error, stdout, stderr) =>
        done({ failed: error !== null, output: stdout + stderr }),
      );
    });
  };

  writeFileSync(folder.file("gateways/gw1/tagferry.yaml"), configuration("second"));
  writeFileSync(
    folder.file("gateways/gw1/conf.d/hall.yaml"),
    "sources: { hall: { type: simulator, tags: [{ input: hall.sine }] } }\n",
  );
  const rolled = await roll();
  expect(rolled.output).toContain("failed=0");
  expect(await sources()).toEqual(["second", "hall"]);
  expect(statSync(`${etc}/credentials/service_password`).mode & 0o777).toBe(0o600);
  expect(readFileSync(folder.file("unit/credentials.conf"), "utf8")).toBe(
    `[Service]\n${["service_password", "read_token"].map((name) => `LoadCredential=${name}:${etc}/credentials/${name}\n`).join("")}`,
  );
  // A second run of the role changes nothing.
  expect((await roll()).output).toMatch(/changed=0 .*failed=0/);

  writeFileSync(folder.file("gateways/gw1/tagferry.yaml"), configuration("third").replace("input: ", "inpt: "));
  const refused = await roll();
  expect(refused.failed).toBe(true);
  expect(refused.output).toContain("unknown key");
  expect(readFileSync(file, "utf8")).toBe(configuration("second"));
  expect(await sources()).toEqual(["second", "hall"]);
  expect(readFileSync(restarts, "utf8")).toBe("x\n");

  // A new credential is in effect though the play failed: the next one would find nothing to do.
  const renewed = await roll({ ...values.tagferry_credentials, service_password: `${secret}-renewed` });
  expect(renewed.failed).toBe(true);
  expect(readFileSync(restarts, "utf8")).toBe("x\nx\n");
  expect(await sources()).toEqual(["second", "hall"]);
  for (const { output } of [rolled, refused, renewed]) expect(output).not.toMatch(/canary/);
});
