// The help text of every command.
import { expect, test } from "vitest";
import { command } from "../../support/command.ts";

/** Yields every command and group of commands with its help. */
async function* helps(path: readonly string[] = []): AsyncGenerator<{ path: string; help: string }> {
  const { stdout: help, status } = await command([...path, "--help"]);
  expect({ path, status }).toEqual({ path, status: 0 });
  if (path.length > 0) yield { path: path.join(" "), help };
  const [, listed = ""] = help.split("\nCommands:\n");
  for (const [, name = ""] of listed.matchAll(/^ {2}([a-z][a-z-]*)/gm))
    if (name !== "help") yield* helps([...path, name]);
}

/** Commands that always print JSON, or nothing that a script would parse. */
const withoutJson = ["run", "init", "service", "demo", "install-service", "schema", "completion", "support-bundle"];

test("every command shows an example with existing options, and --json where scripts use it", async () => {
  const wrong: string[] = [];
  const seen: string[] = [];
  for await (const { path, help } of helps()) {
    seen.push(path);
    const examples = [...help.matchAll(/^Example: (.*)$/gm)].map(([, line]) => line ?? "");
    if (!examples.some((line) => /^(sudo )?tagferry /.test(line))) wrong.push(`${path} has no example`);
    const isGroup = help.includes("\nCommands:\n");
    for (const line of examples)
      for (const [option] of isGroup
        ? []
        : (line
            .split("|")
            .at(-1)
            ?.split(">")[0]
            ?.matchAll(/(?<= )--?[a-z-]+/g) ?? []))
        if (!new RegExp(`[ ,]${option}[ ,<]`).test(help.slice(0, help.indexOf("Example:"))))
          wrong.push(`${path} has no option ${option}: ${line}`);
    if (!isGroup && !withoutJson.includes(path) && !help.includes("--json")) wrong.push(`${path} has no --json`);
  }
  expect(wrong).toEqual([]);
  expect(seen).toEqual(expect.arrayContaining(["run", "buffer export", "config migrate", "reload", "signals diff"]));
});

test("the version is printed for people and for scripts", async () => {
  expect((await command(["version"])).stdout).toMatch(/^tagferry \d+\.\d+\.\d+, Node v\d+/);
  expect(JSON.parse((await command(["version", "--json"])).stdout)).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    node: process.version,
  });
});
