// Completion in real zsh and fish shells.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { terminal } from "../support/terminal.ts";

async function scriptFor(shell: string, file: string): Promise<void> {
  writeFileSync(file, (await command(["completion", shell])).stdout);
}

test("zsh completes commands and options", async () => {
  using folder = temporaryFolder();
  const script = folder.file("_tagferry");
  await scriptFor("zsh", script);
  writeFileSync(
    folder.file(".zshrc"),
    `PS1='ok> '; autoload -Uz compinit; compinit -u -d ${folder.file("dump")}; source ${script}
tagferry() { print -r -- "typed: $*" }`,
  );
  await using zsh = terminal(`env ZDOTDIR=${folder.path} zsh -d -i`);
  await zsh.type("ok> ", "tagferry buf\texp\t--form\tnd\t\r");
  await zsh.sees("typed: buffer export --format ndjson");
});

test("fish completes commands and options", async () => {
  using folder = temporaryFolder();
  const script = folder.file("tagferry.fish");
  await scriptFor("fish", script);
  const offered = (line: string) => {
    const asked = `source ${script}; complete -C "${line}"`;
    const { stdout, stderr } = spawnSync("fish", ["--no-config", "-c", asked], { encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout.split("\n").map((row) => row.split("\t")[0]);
  };
  expect(offered("tagferry buf")).toContain("buffer");
  expect(offered("tagferry buffer ")).toEqual(expect.arrayContaining(["stat", "verify", "export"]));
  expect(offered("tagferry check --on")).toEqual(expect.arrayContaining(["--online"]));
  expect(offered("tagferry buffer export --format n")).toContain("ndjson");
  expect(offered("tagferry completion z")).toContain("zsh");
});
