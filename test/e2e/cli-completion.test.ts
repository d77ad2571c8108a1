// What a shell offers for the tab key.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { has } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The completions that bash offers at the end of `line`. */
function completed(script: string, line: string): readonly string[] {
  const words = line.split(" ").map((word) => `'${word}'`);
  const asked = `source '${script}'; COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _tagferry; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync("bash", ["--norc", "-c", asked], { encoding: "utf8" });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return stdout.split("\n").filter((word) => word !== "");
}

test.runIf(has.shell)("bash completes commands, commands of commands, options and their values", async () => {
  using folder = temporaryFolder();
  const { status, stdout } = await command(["completion", "bash"]);
  expect(status).toBe(0);
  const script = folder.file("tagferry.bash");
  writeFileSync(script, stdout);

  expect(completed(script, "tagferry ")).toEqual(expect.arrayContaining(["run", "check", "buffer", "--version"]));
  expect(completed(script, "tagferry ch")).toEqual(["check"]);
  expect(completed(script, "tagferry buffer ")).toEqual(expect.arrayContaining(["stat", "verify", "export"]));
  expect(completed(script, "tagferry check --o")).toEqual(["--online"]);
  expect(completed(script, "tagferry buffer export --format n")).toEqual(["ndjson"]);
  expect(completed(script, "tagferry completion f")).toEqual(["fish"]);
  // A value of an option is not taken for a command. After an option that takes a file, the shell completes file names.
  expect(completed(script, "tagferry test --source run --on")).toEqual(["--once"]);
  expect(completed(script, "tagferry run -c ")).toEqual([]);
});

test("each script has every command of the help", async () => {
  const { stdout: help } = await command(["--help"]);
  const names = [...help.slice(help.indexOf("Commands:")).matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(15);
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stdout } = await command(["completion", shell]);
    for (const name of names) if (name !== "help") expect(stdout).toMatch(new RegExp(`['| ]${name}[' |:]`));
  }
  expect(await command(["completion", "tcsh"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Allowed choices are bash, zsh, fish"),
  });
});
