// The peer itself: the properties of three real servers that the cluster tests rely on.
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { listen } from "../../../src/lib/network/listen.ts";
import { eventually } from "../../support/eventually.ts";
import { type NatsServer, openNatsServers } from "../../support/nats-servers.ts";

/** On a busy machine, servers may vote several times before one has a majority. */
const electedWithinMs = 120_000;

/** The size and the leader of the cluster as a server reports them. */
async function seenBy(server: NatsServer) {
  const { meta_cluster: meta } = (await server.monitor("jsz")) as {
    meta_cluster?: { cluster_size: number; leader?: string; replicas?: { offline?: boolean }[] };
  };
  return { size: meta?.cluster_size, leader: meta?.leader };
}

test("three servers elect a leader, again when it is killed, isolated, or has lost its data", {
  timeout: 6 * electedWithinMs,
}, async () => {
  await using cluster = await openNatsServers();
  const first = await eventually(async () => (await seenBy(cluster.servers[0]!)).leader, electedWithinMs);
  const leader = cluster.servers.find(({ name }) => name === first)!;
  const other = cluster.servers.find(({ name }) => name !== first)!;

  await leader.kill();
  const second = await eventually(async () => {
    const seen = (await seenBy(other)).leader;
    return seen !== undefined && seen !== first && seen;
  }, electedWithinMs);
  leader.wipe();
  await leader.start();
  await cluster.healthy(electedWithinMs);

  const isolated = cluster.servers.find(({ name }) => name === second)!;
  const rest = cluster.servers.find(({ name }) => name !== second)!;
  isolated.isolate();
  await eventually(async () => {
    const seen = (await seenBy(rest)).leader;
    return seen !== undefined && seen !== second;
  }, electedWithinMs);
  isolated.rejoin();
  await cluster.healthy(electedWithinMs);
  expect((await seenBy(isolated)).size).toBe(3);
});

test("a killed server whose port another process has taken starts as soon as the port is free again", async () => {
  await using cluster = await openNatsServers();
  const server = cluster.servers[0]!;
  await server.kill();
  const other = createServer();
  await listen(other, { host: "127.0.0.1", port: server.port }, "another process");
  const started = server.start();
  const first = server.pid;
  await eventually(() => server.pid !== first);
  other.close();
  await started;
  await cluster.healthy();
});
