// The tarball of `npm pack` runs when it is installed with npm alone. With the simulated devices it shows the demo.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import description from "../../package.json" with { type: "json" };
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const { devDependencies } = description;
const devices = ["aedes", "node-opcua-server", "node-opcua-address-space"] as const;

test("npm installs the packed tarball for all users of a machine, and npx runs its demo", async () => {
  using folder = temporaryFolder();
  const stage = folder.file("stage");
  mkdirSync(stage);
  for (const file of ["package.json", "README.md", "LICENSE"]) cpSync(`${root}/${file}`, `${stage}/${file}`);
  cpSync(dirname(program), `${stage}/dist`, { recursive: true });
  await run("npm", ["pack", "--pack-destination", folder.path], { cwd: stage });
  const tarball = folder.file(`tagferry-${description.version}.tgz`);
  // The commands run under the Node that runs this test.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` };
  const options = { cwd: folder.path, env };

  await run("npm", ["install", "--global", "--prefix", folder.file("prefix"), tarball], options);
  const installed = folder.file("prefix/bin/tagferry");
  expect((await run(installed, ["version"], options)).stdout).toContain(`tagferry ${description.version}`);
  const alone = await run(installed, ["demo", "--duration", "5s"], options).catch((error: { stderr: string }) => error);
  expect(alone.stderr).toContain("npm install aedes node-opcua-server");

  const packages = [tarball, ...devices.map((name) => `${name}@${devDependencies[name]}`)];
  const { stdout } = await run(
    "npx",
    ["-y", ...packages.flatMap((name) => ["-p", name]), "tagferry", "demo", "--duration", "5s"],
    {
      ...options,
      env: { ...env, npm_config_cache: folder.file("cache") },
      maxBuffer: 16 * 2 ** 20,
    },
  );
  expect(stdout).toMatch(/demo: read \d+, stored \d+, missing 0, /);
});
