// A file in place of a folder, a full disk, missing permissions.
// The error names the path, what was expected and found, and a command that helps. It never shows a stack trace.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { fileFailure, reasonOf, remedyOf } from "../../src/core/errors.ts";
import { startAgent } from "../support/agent-process.ts";
import { tagferry } from "../support/cli.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { integration } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (dataDir: string) => `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(dataDir)}, ownSignals: "off" }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "\${PW:-x}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  line: { type: mqtt, url: "mqtt://127.0.0.1:1", tags: [{ input: a, topic: a }] }
`;

/** A data directory with files in place of folders, and a configuration that uses it. */
function misplaced(...files: readonly string[]) {
  const home = temporaryFolder();
  const data = home.file("data");
  for (const file of files) {
    mkdirSync(dirname(home.file(`data/${file}`)), { recursive: true });
    writeFileSync(home.file(`data/${file}`), "not a folder");
  }
  writeFileSync(home.file("tagferry.yaml"), configuration(data));
  return { home, data, file: home.file("tagferry.yaml"), [Symbol.dispose]: () => home[Symbol.dispose]() };
}

/** Whether a text of `value` contains `part`. */
const inJson = (value: unknown, part: string) => JSON.stringify(value).includes(JSON.stringify(part).slice(1, -1));

const stack = /\n\s+at \S/;

test("a file in place of the buffer's folder ends the start with the path, what was found and a command", async () => {
  using place = misplaced("buffer");
  const { status, stderr } = await tagferry(["run", "-c", place.file]);
  expect(status).toBe(1);
  const buffer = join(place.data, "buffer");
  expect(stderr).toContain(
    `tagferry: ${buffer}: expected a folder, found a file (EEXIST)\n  mv ${buffer} ${buffer}.aside moves it away\n`,
  );
  expect(stderr).not.toMatch(stack);
});

test("a folder in place of the buffer's LOCK ends the start with the path, what was found and a command", async () => {
  using place = misplaced();
  const buffer = join(place.data, "buffer");
  const lock = `${buffer}/LOCK`;
  mkdirSync(lock, { recursive: true });
  const { status, stderr } = await tagferry(["run", "-c", place.file]);
  expect(status).toBe(1);
  expect(stderr).toContain(
    `tagferry: cannot write to ${buffer}: ${lock}: expected a file, found a folder (EISDIR)\n  mv ${lock} ${lock}.aside moves it away\n`,
  );
});

test.runIf(has.misplacedFiles)(
  "files in place of the agent's other folders are named in its log and status, without a stack",
  async () => {
    using place = misplaced("gaps", "upload", "sources");
    await using agent = await startAgent({ folder: place.home.path, configuration: configuration(place.data) });
    const logged = (path: string) => () => agent.log.some((line) => inJson(line, path));
    for (const folder of ["gaps", "upload", "sources/line"]) await eventually(logged(join(place.data, folder)), 30_000);
    expect(agent.log.filter((line) => JSON.stringify(line).includes('"stack"'))).toEqual([]);
    const folder = join(place.data, "upload");
    expect(inJson(agent.log, `${folder}: expected a folder, found a file (EEXIST)`)).toBe(true);
    const { upload, warnings } = await agent.status();
    expect(inJson([upload, warnings], `mv ${folder} ${folder}.aside moves it away`)).toBe(true);
  },
);

test.runIf(has.misplacedFiles).each([
  [["gaps"], "gaps", /gaps: expected a folder at each level of the path, found a file \(ENOTDIR\)\n {2}namei -l /],
  [
    ["upload"],
    "rejects list",
    /upload\/\S+: expected a folder at each level .* found a file \(ENOTDIR\)\n {2}namei -l /,
  ],
])("a command that reads %s says that it cannot, and not that there is nothing", async (files, args, expected) => {
  using place = misplaced(...files);
  const { status, stderr, stdout } = await command([...args.split(" "), "-c", place.file]);
  expect({ status: status === 0, stdout }).toEqual({ status: false, stdout: "" });
  expect(stderr).toMatch(expected);
  expect(stderr).not.toMatch(stack);
});

test("buffer stat names a file in place of the buffer's folder", async () => {
  using place = misplaced("buffer");
  const { status, stderr } = await command(["buffer", "stat", place.data]);
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /holds no buffer: \S+[/\\]buffer: expected a folder at each level .* found a file \(ENOTDIR\)\n {2}namei -l /,
  );
});

const failure = (code: string, more: object) =>
  Object.assign(new Error(`${code}: as the system says`), { code, errno: -1, syscall: "open", ...more });

test.each([
  ["EACCES", "/d/x", "/d/x: expected permission to use it, found none (EACCES)", /^namei -l \/d\/x .*chown/],
  [
    "EROFS",
    "/d/x",
    "/d/x: expected a disk that can be written, found one that is read-only (EROFS)",
    /^findmnt -T \/d\/x .*remount,rw/,
  ],
  ["ENOSPC", "/d/x", "/d/x: expected free space on the disk, found none (ENOSPC)", /^df -h \/d\/x /],
  ["ENOSPC", undefined, "expected free space on the disk, found none (ENOSPC)", /^df -h shows/],
  ["EISDIR", "/d/x", "/d/x: expected a file, found a folder (EISDIR)", /^mv \/d\/x \/d\/x\.aside /],
])("%s of %s is said with path, expected, found and command", (code, path, message, remedy) => {
  const error = failure(code, path === undefined ? { syscall: "write" } : { path });
  expect(reasonOf(error)).toBe(message);
  expect(remedyOf(error)).toMatch(remedy);
});

test("failures of connections and defects are not reported as failures of files", () => {
  for (const error of [
    failure("ECONNREFUSED", {}),
    failure("EACCES", { syscall: "bind" }),
    new TypeError("x is no function"),
  ])
    expect(fileFailure(error)).toBeUndefined();
});
