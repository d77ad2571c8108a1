// A test that cannot fail proves nothing: each safeguard is taken out of a copy of the sources, and its tests have to fail.
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ablations } from "../../../support/ablations.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const root = join(import.meta.dirname, "../../../..");
const sources = "src/buffer/disk";
const copy = temporaryFolder();
afterAll(() => copy[Symbol.dispose]());
for (const part of ["src/buffer", "src/core", "src/lib", "test/support", "test/unit/buffer", "test/vitest.config.ts"])
  cpSync(join(root, part), copy.file(part), { recursive: true });
cpSync(join(root, "package.json"), copy.file("package.json"));
symlinkSync(join(root, "node_modules"), copy.file("node_modules"));

function run(tests: readonly string[]): { failed: boolean; output: string } {
  const { TAGFERRY_PEERS: _peers, TAGFERRY_RESULTS: _results, ...env } = process.env;
  const vitest = copy.file("node_modules/vitest/vitest.mjs");
  const files = tests.map((name) => `test/unit/buffer/disk/${name}`);
  const args = [vitest, "run", "--bail=1", "--config", "test/vitest.config.ts", ...files];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: copy.path, env, encoding: "utf8" });
  return { failed: status !== 0, output: stdout + stderr };
}

test("with every safeguard in its place these tests pass", { timeout: 1_200_000 }, () => {
  const { failed, output } = run([...new Set(ablations.map(({ test: name }) => name))]);

  expect({ failed, output: failed ? output : "" }).toEqual({ failed: false, output: "" });
});

test.each(ablations)("without $safeguard $test fails", { timeout: 600_000 }, ({ file, code, without, test: name }) => {
  const path = copy.file(join(sources, file));
  const whole = readFileSync(path, "utf8");
  expect(whole.split(code)).toHaveLength(2);
  try {
    writeFileSync(
      path,
      whole.replace(code, () => without),
    );

    const { failed, output } = run([name]);

    // It is the assertions that fail: the code could be run.
    expect({ failed, asserted: /AssertionError|Property failed/.test(output) }).toEqual({
      failed: true,
      asserted: true,
    });
  } finally {
    writeFileSync(path, whole);
  }
});

test("no sync of a file or folder is without a line in the table", () => {
  const missing: string[] = [];
  for (const file of readdirSync(join(root, sources)).filter((name) => name.endsWith(".ts"))) {
    const text = readFileSync(join(root, sources, file), "utf8");
    const inTable = ablations.filter((each) => each.file === file);
    for (const [line] of text.matchAll(
      /^(?!.*function|.*: void;).*(?:[fF]ile\.sync\(\)|\bsync(?:Folder)?\((?:dirname|this|folder|`)).*$/gm,
    ))
      if (!inTable.some(({ code, without }) => code.includes(line.trim()) && !without.includes(line.trim())))
        missing.push(`${file}: ${line.trim()}`);
  }

  expect(missing).toEqual([]);
});
