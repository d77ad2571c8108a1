// Commands without -c use $TAGFERRY_CONFIG, then ./tagferry.yaml, then the path of the package.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { expect, test } from "vitest";
import { parseRunShortcut } from "../../src/cli/shared/default-config.ts";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (name: string, http = "") => `version: 1
agent: { name: ${name} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lvg, auth: { basic: { password: x } } }
${http}sources: { demo: { type: simulator, tags: [{ input: ${name}.sine, wave: sine }] } }
`;

/** A working directory with a configuration, and a second configuration at another path. */
function places() {
  const folder = temporaryFolder();
  const elsewhere = folder.file("elsewhere.yaml");
  writeFileSync(folder.file("tagferry.yaml"), configuration("here"));
  writeFileSync(elsewhere, configuration("elsewhere"));
  return { folder, elsewhere, cwd: folder.path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

const reads = async (args: readonly string[], options: Parameters<typeof command>[1]) =>
  /(\w+)\.sine/.exec((await command(["test", "--once", ...args], options)).stdout)?.[1];

test("a flag takes precedence over the variable, and the variable over the working directory", async () => {
  using at = places();
  const { cwd, elsewhere } = at;
  const variables = { TAGFERRY_CONFIG: elsewhere };
  expect(await reads([], { cwd })).toBe("here");
  expect(await reads([], { cwd, variables })).toBe("elsewhere");
  expect(await reads(["-c", "tagferry.yaml"], { cwd, variables })).toBe("here");
  expect(await reads([], { cwd, variables: { TAGFERRY_CONFIG: "" } })).toBe("here");
});

test("a variable that names a missing file is an error, without a fallback", async () => {
  using at = places();
  const { status, stdout } = await command(["check"], { cwd: at.cwd, variables: { TAGFERRY_CONFIG: "nowhere.yaml" } });
  expect({ status, stdout }).toMatchObject({ status: 78, stdout: expect.stringContaining("nowhere.yaml:1:1") });
});

test("the short form of run uses the same paths", () => {
  using at = places();
  expect(parseRunShortcut(["run"], { cwd: at.cwd, variables: {} })).toBe("tagferry.yaml");
  expect(parseRunShortcut(["run"], { cwd: at.cwd, variables: { TAGFERRY_CONFIG: "/etc/x.yaml" } })).toBe("/etc/x.yaml");
  expect(parseRunShortcut(["run"], { cwd: at.folder.file("nowhere"), variables: {} })).toBe(
    "/etc/tagferry/tagferry.yaml",
  );
});

test("every command with -c lists the paths in its help", async () => {
  const { stdout: help } = await command(["--help"]);
  const names = [...help.matchAll(/^ {2}([a-z][a-z-]*)/gm)].flatMap(([, name = ""]) => (name === "help" ? [] : [name]));
  const wrong: string[] = [];
  for (const name of names) {
    const { stdout } = await command([name, "--help"]);
    if (/-c, --config/.test(stdout) && !/\$TAGFERRY_CONFIG,\s+(\.\/)?tagferry\.yaml/.test(stdout)) wrong.push(name);
  }
  expect(wrong).toEqual([]);
});

test("status asks the agent of the configuration in the working directory, or with --url any other", async () => {
  using at = places();
  const asked: string[] = [];
  await using server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  writeFileSync(at.folder.file("tagferry.yaml"), configuration("here", `http: { listen: "127.0.0.1:${port}" }\n`));
  await command(["status"], { cwd: at.cwd });
  expect(asked).toEqual(["/api/status"]);
  const other = await command(["status", "--url", "http://127.0.0.1:1"], { cwd: at.cwd });
  expect(other.stderr).toContain("no agent answers at http://127.0.0.1:1");
});
