// The login at real servers.
import { writeFileSync } from "node:fs";
import { nkeys } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { NatsLink } from "../../../src/cluster/connection/nats-connection.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { eventually } from "../../support/eventually.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a replaced key file is in use at the next connection", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  const nkeyFile = folder.file("agent.nk");
  const [former, next] = [nkeys.createUser(), nkeys.createUser()];
  const users = [former, next].map((key) => `{ nkey: ${key.getPublicKey()} }`);
  await using servers = await openNatsServers({ count: 1, config: [`authorization { users: [${users.join(", ")}] }`] });
  const [server] = servers.servers;
  writeFileSync(nkeyFile, former.getSeed());
  const options = clusterOptions.parse({ servers: servers.urls, nkeyFile });
  await using link = new NatsLink(options, "test", testRuntime());
  const key = async () => JSON.stringify(await server?.monitor("connz?auth=1"));
  await link.connected(AbortSignal.timeout(30_000));
  expect(await key()).toContain(former.getPublicKey());

  writeFileSync(nkeyFile, next.getSeed());
  await server?.kill();
  await eventually(() => !link.state.isConnected);
  await server?.start();
  await link.connected(AbortSignal.timeout(30_000));

  expect(await key()).toContain(next.getPublicKey());
});

test("a key file that is missing for a while is read once it is there", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  const nkeyFile = folder.file("agent.nk");
  const key = nkeys.createUser();
  const users = `authorization { users: [{ nkey: ${key.getPublicKey()} }] }`;
  await using servers = await openNatsServers({ count: 1, config: [users] });
  const options = clusterOptions.parse({ servers: servers.urls, nkeyFile });
  const runtime = testRuntime();
  await using link = new NatsLink(options, "test", runtime);
  await eventually(() => runtime.lines.some(({ fields }) => String(fields.reason).includes("agent.nk")));
  writeFileSync(nkeyFile, key.getSeed());
  await link.connected(AbortSignal.timeout(30_000));
});
