// nats-server itself checks the server configuration in `packaging/compose`.
import { spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { natsServerProgram } from "../../support/nats-servers.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("nats-server accepts the configuration of the compose file", async () => {
  using folder = temporaryFolder();
  copyFileSync(resolve(import.meta.dirname, "../../../packaging/compose/nats.conf"), folder.file("nats.conf"));
  // Writes the users file as the comment at the top of the compose file instructs.
  writeFileSync(folder.file("users.conf"), 'authorization { users: [{ user: tagferry, password: "secret" }] }\n');

  const args = ["--name", "nats1", "-t", "-c", folder.file("nats.conf")];
  const run = spawnSync(await natsServerProgram(), args, { encoding: "utf8" });

  expect(run.stderr).toContain("is valid");
  expect(run.status).toBe(0);
});
