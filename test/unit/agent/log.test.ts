// Lines of the log as a machine reads them.
import { closeSync, openSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openLog } from "../../../src/agent/log.ts";
import { eventually } from "../../support/eventually.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a field that parent and child both set stands once in a line, as the child set it", async () => {
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
