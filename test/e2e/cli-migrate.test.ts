// Migration of a configuration to the current format. No older format exists.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const body = `agent: { name: gw1 }   # the one in the hall
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  demo: { type: simulator, tags: [{ input: a }] }
`;

test("a file of the current format needs no migration", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(file, `version: 1\n${body}`);
  expect(await command(["config", "migrate", "-c", file, "--dry-run"])).toMatchObject({
    status: 0,
    stdout: `${file} has version 1, the present one: nothing to migrate\n`,
  });
  const json = await command(["config", "migrate", "-c", file, "--json"]);
  expect(JSON.parse(json.stdout)).toEqual({ file, version: 1, migrated: false });
});

test("a file without a version, of a newer program, with invalid YAML and a missing one are unchanged", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  const missing = await command(["config", "migrate", "-c", file]);
  expect(missing).toMatchObject({ status: 78, stderr: expect.stringContaining("cannot be read") });
  for (const [text, complaint] of [
    [body, "must be 1, the version of this file's format"],
    [`version: 7\n${body}`, "must be 1, the version of this file's format, is 7"],
    ["version: [1\n", `${file}:2:1  is not YAML`],
  ] as const) {
    writeFileSync(file, text);
    const refused = await command(["config", "migrate", "-c", file]);
    expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining(complaint) });
    expect(readFileSync(file, "utf8")).toBe(text);
  }
});
