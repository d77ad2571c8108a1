// `npm ci && npm run demo` with any Node: the scripts of package.json run on the Node that `npm ci` installs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { has } from "../../support/platform.ts";
import { pretendedNode } from "../../support/pretended-node.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const root = resolve(import.meta.dirname, "../../..");
const launcher = "packaging/pinned-node.cjs";
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** The files of the repository that start a script, and a script that runs until it is told to stop. */
function clone(program: "installed" | "missing" | "unusable") {
  const folder = temporaryFolder();
  for (const file of ["package.json", launcher, "src/cli/supported-node.cjs"])
    cpSync(join(root, file), folder.file(file), { recursive: true });
  const [name] = Object.keys(manifest.optionalDependencies);
  const bin = folder.file(`node_modules/${name}/bin`);
  mkdirSync(bin, { recursive: true });
  const node = join(bin, basename(process.execPath));
  const place = has.symbolicLinks ? symlinkSync : copyFileSync;
  if (program === "installed") place(process.execPath, node);
  if (program === "unusable") writeFileSync(node, "for another libc");
  writeFileSync(
    folder.file("script.ts"),
    `const words: string[] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(3));
console.log(import.meta.main, words.join(" "), process.versions.node, process.env["PATH"]);
if (words[0] === "wait") setInterval(() => {}, 1_000);
`,
  );
  return {
    bin,
    run: (version: string, ...words: string[]) =>
      spawn(process.execPath, [...pretendedNode(folder, version), folder.file(launcher), "script.ts", ...words], {
        cwd: folder.path,
      }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

async function ended(child: ReturnType<typeof spawn>) {
  const [stdout, stderr, [status]] = await Promise.all([
    child.stdout ? text(child.stdout) : "",
    child.stderr ? text(child.stderr) : "",
    once(child, "close"),
  ]);
  return { status, stdout, stderr };
}

test("an old Node runs a script on the pinned one, which is also the first in PATH", async () => {
  using repository = clone("installed");
  const { versions, env } = process;
  expect(await ended(repository.run("20.20.2", "a", "b"))).toEqual({
    status: 0,
    stdout: `true a b ${versions.node} ${repository.bin}${delimiter}${env["PATH"]}\n`,
    stderr: "",
  });
});

test.runIf(has.signals)("an old Node passes SIGTERM on, and ends as the script does", async () => {
  using repository = clone("installed");
  const child = repository.run("20.20.2", "wait");
  const result = ended(child);
  child.stdout.once("data", () => child.kill("SIGTERM"));
  expect(await result).toMatchObject({ status: 3, stderr: "" });
});

test("a supported Node runs the script itself", async () => {
  using repository = clone("installed");
  const result = await ended(repository.run("24.0.0", "a"));
  expect(result).toEqual({ status: 0, stdout: `true a 24.0.0 ${process.env["PATH"]}\n`, stderr: "" });
});

test.each(has.shell ? (["missing", "unusable"] as const) : (["missing"] as const))(
  "an old Node prints one line if the pinned one is %s",
  async (program) => {
    using repository = clone(program);
    expect(await ended(repository.run("20.20.2", "a"))).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(/^tagferry: Node 24 or newer is required, this is v20\.20\.2 .*\n$/),
    });
  },
);

test("every script that needs the pinned Node asks for it, in syntax that any Node can parse", async () => {
  const starts = Object.entries<string>(manifest.scripts).filter(([name]) => !["check", "format"].includes(name));
  for (const [, script] of starts) expect(script).toContain(`node ${launcher} `);
  expect(starts).not.toEqual([]);
  await expect(transform(readFileSync(join(root, launcher), "utf8"), { target: "es5" })).resolves.toBeDefined();
});
