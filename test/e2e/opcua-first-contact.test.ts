// The first steps with an OPC UA server: the commands in the order in which an integrator types them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { command } from "../support/command.ts";
import { putKey } from "../support/opcua-key.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lvg";

/** Runs commands for an agent that has never run. The data directory is the one that the service manager provides. */
async function beginner() {
  const folder = temporaryFolder();
  const data = folder.file("data");
  // Generating a key takes long.
  await putKey("agent", join(data, "pki"));
  const run = (args: readonly string[], answers?: readonly string[]) =>
    command(args, { variables: { STATE_DIRECTORY: data }, ...(answers && { answers }) });
  return { folder, file: folder.file("tagferry.yaml"), run, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test("a new certificate that check --online finds is listed, and accepted by the command that it prints", async () => {
  using agent = await beginner();
  const { file, run } = agent;
  await using server = await opcuaServer({ folder: agent.folder.file("server"), secure: true });
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1 }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: x } } }
sources: { line: { type: opcua, url: "${server.url}", tags: [{ input: temp, path: Line/Temp }] } }
`,
  );
  const refused = await run(["check", "--online", "-c", file]);
  const proposed = /tagferry (trust accept [0-9a-f]{40} -c \S+?);/.exec(refused.stdout + refused.stderr)?.[1] ?? "";
  expect(proposed).toContain(file);
  expect(refused.stdout + refused.stderr).not.toContain("check the credentials");
  const thumbprint = proposed.split(" ")[2];
  expect((await run(["trust", "list", "-c", file])).stdout).toContain(`${thumbprint} (rejected)`);

  expect(await run(proposed.split(" "))).toMatchObject({ status: 0 });

  expect((await run(["check", "--online", "-c", file])).stdout).toContain("line: answers");
  const read = await run(["test", "--once", "-c", file]);
  expect(read).toMatchObject({ status: 0, stdout: expect.stringMatching(/temp +20 °C/) });
});

test("init shows the server's certificate, and trusts it for the agent when the operator has compared it", async () => {
  using agent = await beginner();
  const { file, run } = agent;
  await using server = await opcuaServer({ folder: agent.folder.file("server"), secure: true });
  const start = ["gw1", "", integration, "", "secret", server.url];

  const { stderr, status } = await run(["init", "-c", file], [...start, "", "y", "", "y", ""]);

  expect(status).toBe(0);
  expect(stderr).toMatch(
    /compare it with what the server itself displays:\n +thumbprint +[0-9a-f]{40}\n +subject +.+\n +valid +.+ to .+/,
  );
  expect(parse(readFileSync(file, "utf8")).sources.opcua).not.toHaveProperty("security");
  expect((await run(["trust", "list", "-c", file])).stdout).toMatch(/[0-9a-f]{40} \(trusted\)/);
  expect((await run(["check", "--online", "-c", file])).stdout).toContain("opcua: answers");
  expect((await run(["test", "--once", "-c", file])).stdout).toContain("Line.Temp");
});

test("init trusts no certificate that the operator has not compared, and keeps it for later", async () => {
  using agent = await beginner();
  const { file, run } = agent;
  await using server = await opcuaServer({ folder: agent.folder.file("server"), secure: true });
  const start = ["gw1", "", integration, "", "secret", server.url];
  const { stderr, status } = await run(["init", "-c", file], [...start, "n", "", "y", ""]);
  expect(status).toBe(0);
  expect(stderr).toContain("is not trusted; compare it with the server's own");
  expect((await run(["trust", "list", "-c", file])).stdout).toMatch(/[0-9a-f]{40} \(rejected\)/);
});

test.each([
  ["y", { mode: "none" }],
  ["n", undefined],
])("a server without security is read only where init was answered so: %s", async (answer, security) => {
  using agent = await beginner();
  const { file, run } = agent;
  await using server = await opcuaServer({ folder: agent.folder.file("server") });
  const start = ["gw1", "", integration, "", "secret", server.url];

  const { stderr, questions } = await run(["init", "-c", file], [...start, answer, "", "y", ""]);

  expect(stderr).toContain("The server offers no security: everything can be read and changed on the way.");
  expect(questions).toContain("  Read it without security? y or n: ");
  expect(parse(readFileSync(file, "utf8")).sources.opcua.security).toEqual(security);
  const online = await run(["check", "--online", "-c", file]);
  if (security) {
    expect(online.stdout).toContain("opcua: answers");
    expect((await run(["test", "--once", "-c", file])).stdout).toContain("Line.Temp");
  } else expect(online.stdout + online.stderr).toContain("security: { mode: none }");
});

test("a server browsed without security by explicit option is read by init without security", async () => {
  using agent = await beginner();
  const { file } = agent;
  await using server = await opcuaServer({ folder: agent.folder.file("server") });
  const found = await command(["browse", server.url, "--json", "--security-mode", "none"]);
  const piped = { stdin: found.stdout, variables: { STATE_DIRECTORY: agent.folder.file("data") } };
  expect(await command(["init", "-c", file], piped)).toMatchObject({ status: 0 });
  expect(parse(readFileSync(file, "utf8")).sources.opcua.security).toEqual({ mode: "none" });
  const plain = { ...piped, stdin: (await command(["browse", server.url, "--json"])).stdout };
  const { stderr } = await command(["init", "-c", `${file}.plain`], plain);
  expect(stderr).toContain("security: { mode: none }");
});
