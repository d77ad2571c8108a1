// A fourth protocol needs one folder and one line in the registry. No other file of the program names a driver.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { runCommand } from "../../src/cli/program.ts";
import type { Driver } from "../../src/core/driver.ts";
import { drivers } from "../../src/source/registry.ts";
import { httpDriver } from "../fixtures/driver-http/driver.ts";
import { type CommandOptions, command as commandOf } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// The line in the registry. The list is an array at run time, although its type is read-only. Other test files of the
// same process see it, too.
const registry = drivers as Driver[];
beforeAll(() => void registry.push(httpDriver));
afterAll(() => void registry.pop());

/** Runs the command from the sources, because the built program contains its own registry. */
const command = (args: readonly string[], options: CommandOptions = {}) => commandOf(args, { ...options, runCommand });

/** A web server that provides two numbers. */
async function webServer() {
  const values = { "/temp": 21.5, "/load": 3 };
  const server = createServer((request, response) => {
    const value = Object.entries(values).find(([path]) => path === request.url)?.[1];
    response.end(JSON.stringify(value ?? values));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("init, check, test, browse, security and schema support a driver that was added only to the registry", async () => {
  using folder = temporaryFolder();
  using server = await webServer();
  writeFileSync(folder.file("service_password"), "rope\n", { mode: 0o600 });
  const file = folder.file("tagferry.yaml");
  const run = (...args: string[]) => command(args, { variables: { STATE_DIRECTORY: folder.file("data") } });

  const init = ["init", "--yes", "--name", "gw1", "--source", server.url, "-c", file];
  expect(await run(...init, "--username", "gw1", "--password-file", folder.file("service_password"))).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("--username gw1: HTTP has no login; leave it out"),
  });
  const written = await run(...init);
  expect(written).toMatchObject({ status: 0, stdout: expect.stringContaining("http reads web.temp = 21.5 (/temp)") });
  expect(parse(readFileSync(file, "utf8")).sources.http).toEqual({
    type: "http",
    url: server.url,
    tags: [
      { input: "web.temp", path: "/temp" },
      { input: "web.load", path: "/load" },
    ],
  });
  expect((await run("check", "-c", file)).stdout).toContain("1 source");
  const read = await run("test", "-c", file, "--once");
  expect(read).toMatchObject({ status: 0, stdout: expect.stringMatching(/web\.load .*3/) });
  expect((await run("browse", server.url)).stdout).toMatch(/temp +21\.5/);
  expect((await run("security", "-c", file)).stdout).toMatch(/weak +source http +HTTP is not encrypted/);
  expect((await run("schema")).stdout).toContain("Path of a page that is a number.");
});

test("help, questions and messages name the available protocols, and an empty source of init shows an example", async () => {
  using folder = temporaryFolder();
  expect((await command(["--help"])).stdout.replaceAll(/\s+/g, " ")).toContain("MQTT, Modbus, OPC UA and HTTP");
  const help = (await command(["browse", "--help"])).stdout.replaceAll(/\s+/g, " ");
  expect(help).toContain("an MQTT broker, a Modbus device, an OPC UA server or a web server");
  expect(help).toContain("http://host:80");
  expect((await command(["browse", "10.0.0.5"])).stderr).toContain("or http://10.0.0.5:80");
  writeFileSync(folder.file("service_password"), "rope\n", { mode: 0o600 });
  const file = folder.file("tagferry.yaml");
  const offline = await command(["init", "--yes", "--offline", "--source", "http://10.0.0.5", "-c", file]);
  expect({ offline, text: readFileSync(file, "utf8") }).toEqual({
    offline: expect.objectContaining({ status: 0 }),
    text: expect.stringContaining("# - { input: boiler.temp, path: /temp }"),
  });
});

test("the folder of a driver imports only core and lib, as the architecture test requires", () => {
  const folder = join(import.meta.dirname, "../fixtures/driver-http");
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  const imported = texts.flatMap((text) => [...text.matchAll(/from "(\.[^"]+)"/g)].map(([, path]) => path));
  expect(imported.length).toBeGreaterThan(0);
  expect(imported.filter((path) => !/^(?:\.\/|(?:\.\.\/){3}src\/(?:core|lib)\/)/.test(path ?? ""))).toEqual([]);
});
