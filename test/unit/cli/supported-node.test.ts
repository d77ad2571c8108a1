// The message on a Node version that the program does not support.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { entryText } from "../../../packaging/entry.ts";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { has } from "../../support/platform.ts";
import { pretendedNode } from "../../support/pretended-node.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const root = resolve(import.meta.dirname, "../../..");
const guard = join(root, "src/cli/supported-node.cjs");
const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((done) => {
    execFile(file, [...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) =>
      done({ status: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

/** A folder with the built program's entry file. It runs a program that prints its arguments. */
function built() {
  const folder = temporaryFolder();
  const main = folder.file("main.js");
  writeFileSync(folder.file("package.json"), '{"type":"module"}');
  writeFileSync(main, entryText(), { mode: 0o755 });
  writeFileSync(folder.file("start.js"), 'import "node:fs";\nconsole.log(process.argv.slice(2).join(" "));\n');
  const pretending = (version: string) => pretendedNode(folder, version);
  return { folder, main, pretending, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test.each(["0.10.48", "4.9.1", "12.22.12", "20.20.2", "23.11.1"])(
  "the built program on Node %s prints one line that names both versions, and fails",
  async (version) => {
    using program = built();
    const ended = await run(process.execPath, [...program.pretending(version), program.main, "version"]);
    expect(ended).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(new RegExp(`^tagferry: Node 24 or newer is required, this is v${version} .*\n$`)),
    });
  },
);

test.each(["24.0.0", "26.1.0"])("on Node %s it starts, also through a symbolic link", async (version) => {
  using program = built();
  const link = program.folder.file("tagferry");
  if (has.symbolicLinks) symlinkSync(program.main, link);
  for (const main of has.symbolicLinks ? [program.main, link] : [program.main]) {
    const ended = await run(process.execPath, [...program.pretending(version), main, "a", "b"]);
    expect(ended).toEqual({ status: 0, stdout: "a b\n", stderr: "" });
  }
});

test.runIf(has.shell)(
  "started by its name it passes its flags to a Node that has them, and none to an older one",
  async () => {
    using program = built();
    const bin = program.folder.file("bin");
    mkdirSync(bin);
    const PATH = `${bin}:${process.env["PATH"]}`;
    const nodeOf = (version: string) =>
      writeFileSync(
        join(bin, "node"),
        `#!/bin/sh\n[ "$1" = --version ] && { echo v${version}; exit; }\nfor each; do echo "$each"; done\n`,
        { mode: 0o755 },
      );
    nodeOf("24.1.0");
    const now = await run(program.main, ["run", "-c", "a b.yaml"], { PATH });
    expect(now.stdout.split("\n")).toEqual([...nodeFlags, program.main, "run", "-c", "a b.yaml", ""]);
    nodeOf("20.20.2");
    expect((await run(program.main, ["version"], { PATH })).stdout.split("\n")).toEqual([program.main, "version", ""]);
  },
);

test("the file that checks the version uses the oldest syntax and the version of package.json", async () => {
  const text = readFileSync(guard, "utf8");
  await expect(transform(text, { target: "es5" })).resolves.toBeDefined();
  await expect(transform(entryText(), { target: "es5" })).resolves.toBeDefined();
  expect(engines.node).toBe(`>=${/leastNode = (\d+)/.exec(text)?.[1]}`);
});
