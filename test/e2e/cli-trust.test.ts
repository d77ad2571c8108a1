// What an operator does about a server that the agent does not trust yet.
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { openOpcuaSource } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (dataDir: string, source: string) => `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(dataDir)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
sources: { ${source} }
`;

test("a server that was refused is listed, accepted and then connected to, and can be rejected again", async () => {
  using home = temporaryFolder();
  await using server = await opcuaServer({ folder: home.file("server"), secure: true });
  const file = home.file("agent.yaml");
  const tag = "tags: [{ input: temp, node: 'ns=2;s=Temp' }]";
  writeFileSync(file, configuration(home.file("data"), `line: { type: opcua, url: "${server.url}", ${tag} }`));
  expect(await command(["trust", "list", "-c", file])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("no certificates yet"),
  });
  // Connects as a source of the agent. All sources share the agent's certificate and trust list.
  const connect = (source = "line") =>
    openOpcuaSource({
      stateDir: join(home.file("data"), "sources", source),
      sharedDir: home.file("data"),
      options: { url: server.url },
      tags: [{ node: "nsu=urn:tagferry:test:line;s=Temp" }],
    });
  const refusal = String(await connect().catch((error: unknown) => error));
  const thumbprint = /trust accept ([0-9a-f]{40})/.exec(refusal)?.[1] ?? "";

  const listed = await command(["trust", "list", "-c", file]);
  expect(listed.stdout).toContain(`${thumbprint} (rejected)\n  SHA-256      `);
  expect(listed.stdout).toContain("application  urn:tagferry:test:server");
  expect(listed.stdout).toContain("(own, for the server to trust)");

  const accepted = await command(["trust", "accept", thumbprint.toUpperCase(), "-c", file]);
  expect(accepted.status).toBe(0);
  expect(accepted.stdout).toMatch(/^[0-9a-f]{40} \(trusted\)\n {2}SHA-256 +[0-9a-f]{64}\n/);
  expect(accepted.stdout).toContain("trusted from the next attempt to connect on");
  for (const source of ["line", "oven"]) await (await connect(source))[Symbol.asyncDispose]();

  const sha256 = /SHA-256 +([0-9a-f]{64})/.exec(accepted.stdout)?.[1] ?? "";
  const rejected = await command(["trust", "reject", sha256, "-c", file, "--json"]);
  expect(rejected.status).toBe(0);
  expect(JSON.parse(rejected.stdout)).toMatchObject({ thumbprint, sha256, state: "rejected" });
  await expect(connect()).rejects.toMatchObject({ code: "SOURCE_REFUSED" });

  const own = /([0-9a-f]{40}) \(own/.exec(listed.stdout)?.[1] ?? "";
  const decided = () => Promise.all(["accept", "reject"].map((act) => command(["trust", act, own, "-c", file])));
  for (const { status, stderr } of await decided())
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: `tagferry: ${own} is not the certificate of a server but the agent's own, which servers trust or reject; nothing was changed\n`,
    });
  const pki = join(home.file("data"), "pki");
  renameSync(join(pki, "own/certs/client_certificate.pem"), join(pki, "issuers/certs/issuer.pem"));
  for (const { stderr } of await decided()) expect(stderr).toContain("but that of an issuer; nothing was changed");
  const none = await command(["trust", "reject", "00", "-c", file]);
  expect(none).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("there is no certificate 00; tagferry trust list shows"),
  });
  const json = await command(["trust", "list", "-c", file, "--json"]);
  expect(JSON.parse(json.stdout)).toEqual(
    expect.arrayContaining([expect.objectContaining({ thumbprint, sha256, state: "rejected" })]),
  );
});

test("a configuration without an OPC UA source is reported as such", async () => {
  using home = temporaryFolder();
  const file = home.file("agent.yaml");
  writeFileSync(file, configuration(home.file("data"), "demo: { type: simulator, tags: [{ input: a }] }"));
  const { status, stderr } = await command(["trust", "accept", "00", "-c", file]);
  expect({ status, stderr }).toEqual({ status: 1, stderr: `tagferry: ${file} has no OPC UA source\n` });
  // Scripts that check many gateways get status 0 and an empty list.
  expect(await command(["trust", "list", "-c", file, "--json"])).toMatchObject({ status: 0, stdout: "[]\n", stderr });
});
