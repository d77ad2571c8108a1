// What an operator sees who brings an older configuration to the present format.
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { lineDifference } from "../../src/cli/terminal/line-difference.ts";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const body = `agent: { name: gw1 }   # the one in the hall
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  demo: { type: simulator, tags: [{ input: a }] }
`;

test("the difference is shown, the file of before is kept, and the new one passes check", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(file, `# our plant\n${body}`);
  chmodSync(file, 0o640);
  writeFileSync(`${file}.bak`, "an older one");
  expect(await command(["check", "-c", file])).toMatchObject({ status: 78 });

  const shown = await command(["config", "migrate", "-c", file, "--dry-run"]);
  expect(shown).toMatchObject({ status: 0, stdout: expect.stringContaining("nothing was written\n") });
  expect(readFileSync(file, "utf8")).toBe(`# our plant\n${body}`);

  const { status, stdout } = await command(["config", "migrate", "-c", file]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: `${file}: from no version to version 1
  the file names the version of its format
@@ line 1 @@
 # our plant
+version: 1
 agent: { name: gw1 }   # the one in the hall
 ${body.split("\n")[1]}
written; the file of before is ${file}.bak2
`,
  });
  expect(readFileSync(file, "utf8")).toBe(`# our plant\nversion: 1\n${body}`);
  expect(readFileSync(`${file}.bak2`, "utf8")).toBe(`# our plant\n${body}`);
  expect(readFileSync(`${file}.bak`, "utf8")).toBe("an older one");
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(await command(["check", "-c", file])).toMatchObject({ status: 0 });
  expect((await command(["config", "migrate", "-c", file])).stdout).toBe(
    `${file} has version 1, the present one: nothing to migrate\n`,
  );
  const json = await command(["config", "migrate", "-c", file, "--json"]);
  expect(JSON.parse(json.stdout)).toEqual({ file, version: 1, migrated: false });
});

test("a file of a newer program, one that is no YAML and one that is not there stay as they are", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  const missing = await command(["config", "migrate", "-c", file]);
  expect(missing).toMatchObject({ status: 78, stderr: expect.stringContaining("cannot be read") });
  writeFileSync(file, "version: 7\n");
  const newer = await command(["config", "migrate", "-c", file]);
  expect(newer).toMatchObject({ status: 78, stderr: expect.stringContaining("has version 7, of which this program") });
  writeFileSync(file, "version: [1\n");
  const broken = await command(["config", "migrate", "-c", file]);
  expect(broken).toMatchObject({ status: 78, stderr: expect.stringContaining(`${file}:2:1  is not YAML`) });
  expect(readFileSync(file, "utf8")).toBe("version: [1\n");
  expect(existsSync(`${file}.bak`)).toBe(false);
});

test("a difference is shown with what stands around it", () => {
  const lines = Array.from({ length: 12 }, (_, i) => `line ${i + 1}`);
  const after = lines.toSpliced(10, 1).toSpliced(3, 1, "other", "and another");
  expect(lineDifference(lines.join("\n"), after.join("\n"))).toEqual([
    "@@ line 2 @@",
    " line 2",
    " line 3",
    "-line 4",
    "+other",
    "+and another",
    " line 5",
    " line 6",
    "@@ line 9 @@",
    " line 9",
    " line 10",
    "-line 11",
    " line 12",
  ]);
  expect(lineDifference("a\nb", "a\nb")).toEqual([]);
});
