import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { monitoredFor } from "../../../../src/source/opcua/monitoring/subscription-items.ts";
import { openResumption } from "../../../../src/source/opcua/session/resumption.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { expectMode } from "../../../support/platform.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const session = {
  id: "ns=1;i=1",
  token: "ns=1;i=2",
  name: "s",
  timeoutMs: 60_000,
  nonce: "",
  certificate: "",
  logins: [],
};
const { log } = testRuntime();

test("a session is persisted for the same connection, in a private file", async () => {
  using folder = temporaryFolder();
  const path = folder.file("state/session.json");
  await (await openResumption(path, "plc as reader", log)).remember({ session });
  expect((await openResumption(path, "plc as reader", log)).session).toEqual(session);
  expect((await openResumption(path, "plc as somebody else", log)).session).toBeUndefined();
  expectMode(path, 0o600);
});

test("an unreadable file counts as missing", async () => {
  using folder = temporaryFolder();
  const path = folder.file("session.json");
  for (const content of ["{", "[]", '{"version":2}']) {
    await writeFile(path, content);
    expect((await openResumption(path, "plc", log)).session).toBeUndefined();
  }
});

test("the record of an earlier version, without queue sizes, can still be read after it is written again", async () => {
  using folder = temporaryFolder();
  const path = folder.file("session.json");
  const { entry } = monitoredFor([1, 10, "ns=1;i=1\n100 2 "], [opcuaItem()]);
  const counts = { publishingMs: 100, keepAliveCount: 10, lifetimeCount: 100, nextHandle: 2 };
  const subscription = { id: 7, group: "g", ...counts, started: "", namespaces: [], items: [entry], begun: true };
  await (await openResumption(path, "plc", log)).remember({ session, subscriptions: [subscription] });
  expect(await openResumption(path, "plc", log)).toMatchObject({ session, subscriptions: [subscription] });
});

test("an earlier version can read the record, after a downgrade or in a cluster, and finds no process that uses it", async () => {
  using folder = temporaryFolder();
  const path = folder.file("session.json");
  await (await openResumption(path, "plc", log)).remember({ session });
  const earlier = z.object({ version: z.literal(2), pid: z.int(), connection: z.string(), session: z.object({}) });
  const { pid } = earlier.parse(JSON.parse(await readFile(path, "utf8")));
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});

test("an agent with another certificate keeps the subscriptions of the same user, not the session", async () => {
  using folder = temporaryFolder();
  const path = folder.file("session.json");
  const started = "2026-01-01T00:00:00Z";
  const counts = { publishingMs: 100, keepAliveCount: 10, lifetimeCount: 100, nextHandle: 2 };
  const subscription = { id: 7, group: "g", ...counts, started, namespaces: [], items: [], begun: true };
  const open = (certificate: string, user: string) => openResumption(path, `plc with ${certificate}`, log, user);
  const former = await open("gw1", "reader");
  await former.remember({ session, subscriptions: [subscription] });
  const next = await open("gw2", "reader");
  expect([next.session, next.subscriptions]).toEqual([undefined, [subscription]]);
  expect((await open("gw2", "somebody else")).subscriptions).toEqual([]);
});
