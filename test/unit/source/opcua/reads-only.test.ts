// A server is asked, subscribed to and never changed: no service that writes or calls is used anywhere.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const folder = join(import.meta.dirname, "../../../../src/source/opcua");
/** Services that leave the server's variables as they are. */
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

test("only services that read are asked for", () => {
  const used = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [...readFileSync(join(folder, name), "utf8").matchAll(/\bnew (?:ua\.)?(\w+)Request\(/g)])
    .map(([, service = ""]) => service);
  expect([...new Set(used)].toSorted()).toEqual(harmless);
});
