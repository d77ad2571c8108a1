// The configuration of the servers in `packaging/compose`, judged by nats-server itself.
import { spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { natsServerProgram } from "../../support/nats-servers.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("nats-server accepts the configuration of the compose file", async () => {
  using folder = temporaryFolder();
  copyFileSync(resolve(import.meta.dirname, "../../../packaging/compose/nats.conf"), folder.file("nats.conf"));
  // As the commands at the head of the compose file write it.
  writeFileSync(folder.file("users.conf"), 'authorization { users: [{ user: tagferry, password: "secret" }] }\n');

  const args = ["--name", "nats1", "-t", "-c", folder.file("nats.conf")];
  const run = spawnSync(await natsServerProgram(), args, { encoding: "utf8" });

  expect(run.stderr).toContain("is valid");
  expect(run.status).toBe(0);
});
