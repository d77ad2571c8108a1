// Log lines as a machine parses them.
import { closeSync, openSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import { expect, test } from "vitest";
import { openLog } from "../../../src/agent/log/log.ts";
import { AgentError } from "../../../src/core/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a field set by parent and child appears once in a line, with the child's value", async () => {
  using folder = temporaryFolder();
  const path = folder.file("log");
  const descriptor = openSync(path, "w");
  const log = await openLog({ level: "info", descriptor, pretty: false, fields: { agent: "gw1" } });

  log.child({ part: "source", source: "hall" }).child({ part: "mqtt" }).info({ points: 1 }, "stored");
  await eventually(() => readFileSync(path, "utf8").includes("stored"));
  closeSync(descriptor);

  const line = readFileSync(path, "utf8");
  expect(line.match(/"part"/g)).toHaveLength(1);
  expect(JSON.parse(line)).toMatchObject({ agent: "gw1", part: "mqtt", source: "hall", points: 1, msg: "stored" });
});

const hostile = 'hall"1\n{"level":50,"msg":"forged"}\r\u001b[2J\u001b]0;owned\u0007\u009b31m\u202e\u2028end';

/** The log after a device sent `hostile` as a topic, as its name and as an error text. */
async function logged(pretty: boolean): Promise<string> {
  using folder = temporaryFolder();
  const path = folder.file("log");
  const descriptor = openSync(path, "w");
  const log = await openLog({ level: "info", descriptor, pretty, fields: { agent: "gw1" } });
  const child = log.child({ source: "hall" });
  child.info({ topic: hostile, names: [{ [hostile]: 1 }] }, "unknown topic");
  child.warn({ err: new Error(hostile, { cause: new Error(hostile) }) }, "no answer");
  child.info({}, "last");
  await eventually(() => readFileSync(path, "utf8").includes("last"));
  closeSync(descriptor);
  return readFileSync(path, "utf8");
}

test("whatever text a device sends, a log line stays one line of JSON that decodes to it", async () => {
  const lines = (await logged(false)).trimEnd().split("\n");
  expect(lines).toHaveLength(3);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { topic: hostile, names: [{ [hostile]: 1 }] },
    { err: { message: `${hostile}: ${hostile}` } },
    { msg: "last" },
  ]);
});

test("a failure that the program reports has its remedy in the log and no stack; a defect has its stack", async () => {
  using folder = temporaryFolder();
  const path = folder.file("log");
  const descriptor = openSync(path, "w");
  const log = await openLog({ level: "info", descriptor, pretty: false, fields: {} });
  const cause = new Error("ENOENT: no such file");
  log.error({ err: new AgentError("SERVICE_UNREACHABLE", "service.caFile a cannot be read", { cause }) }, "waits");
  log.error({ err: new TypeError("x is undefined") }, "failed");
  await eventually(() => readFileSync(path, "utf8").includes("undefined"));
  closeSync(descriptor);

  const [failure, defect] = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).err);
  expect(failure).toEqual({
    type: "AgentError",
    message: "service.caFile a cannot be read",
    code: "SERVICE_UNREACHABLE",
    hint: "check service.url, proxy and network",
  });
  expect(defect.stack).toContain("log.test.ts");
});

test("on a terminal the same text moves no cursor, sets no colour and forges no line", async () => {
  const shown = await logged(true);
  // Without the log's own colour codes.
  expect(shown.replace(/\p{Cc}\[\d+m/gu, "")).not.toMatch(/[^\P{Cc}\n]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
  expect(shown).not.toContain("\u001b[2J");
  expect(shown).toContain("\\u001b[2J");
  for (const line of shown.split("\n")) expect(line).not.toMatch(/^\s*\{"level"/);
});

test("lines after a number are those that came since, and a page learns how many it missed", async () => {
  const descriptor = openSync(devNull, "w");
  const log = await openLog({ level: "info", descriptor, pretty: false, fields: {} });
  for (let i = 0; i < 6_000; i++) log.info({ i }, "line");
  log.flush();
  closeSync(descriptor);

  const all = log.recentSince(0);
  expect({ ...all, lines: all.lines.length }).toEqual({ next: 6_000, missed: 1_000, lines: 5_000 });
  const { lines, ...rest } = log.recentSince(5_998);
  expect(rest).toEqual({ next: 6_000, missed: 0 });
  expect(lines.map((line) => JSON.parse(line).i)).toEqual([5_998, 5_999]);
  // A page that was open while the agent was started again.
  expect(log.recentSince(9_000).lines).toHaveLength(5_000);
});
