// The driver never changes a server: the code uses no service that writes or calls a method.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const folder = join(import.meta.dirname, "../../../../src/source/opcua");
/** Services that leave the server's variables unchanged. */
const harmless = [
  "Browse",
  "BrowseNext",
  "CloseSession",
  "CreateMonitoredItems",
  "CreateSubscription",
  "DeleteMonitoredItems",
  "DeleteSubscriptions",
  "FindServers",
  "HistoryRead",
  "ModifyMonitoredItems",
  "ModifySubscription",
  "Publish",
  "Read",
  "Republish",
  "SetMonitoringMode",
  "SetPublishingMode",
  "TransferSubscriptions",
];

test("only services that read are called", () => {
  const texts = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const named = texts.flatMap((text) => [...text.matchAll(/\bcall\(\s*"(\w+)"/g)]).map(([, service = ""]) => service);
  expect([...new Set(named)].toSorted()).toEqual(harmless);
  // Each call names its service, and all requests go through `Link.call`.
  const all = texts.flatMap((text) => [...text.matchAll(/\b(?:link\.call|await call)\(/g)]);
  expect(all).toHaveLength(named.length);
  expect(texts.filter((text) => /\bnew [\w.]*\w+Request\(/.test(text))).toEqual([]);
  expect(texts.flatMap((text) => [...text.matchAll(/_performMessageTransaction\(/g)])).toHaveLength(1);
});
