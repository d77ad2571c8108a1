// An agent at a server that reaches no leader. `integration/cluster` tests the same on real servers.
import { expect, test } from "vitest";
import { JoinedCluster } from "../../../src/cluster/cluster.ts";
import { NatsLink } from "../../../src/cluster/connection/nats-connection.ts";
import { natsBucket } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { eventually } from "../../support/eventually.ts";
import { hurriedClock } from "../../support/hurried-clock.ts";
import { natsStub } from "../../support/nats-stub.ts";
import { testRuntime } from "../../support/runtime.ts";

/** Refuses each request, as a server without JetStream does: status 503, no responders. */
const leaderless = (name: string) =>
  natsStub(name, (reply, id) => (id === undefined ? "" : `HMSG ${reply} ${id} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`));

test("a request that no server takes names the leader that is missing", async () => {
  using server = await leaderless("a");
  const link = new NatsLink(clusterOptions.parse({ servers: [server.url] }), "test", testRuntime());
  await using _link = link;
  await link.connected(AbortSignal.timeout(30_000));

  await expect(natsBucket(link, { name: "b", replicas: 3 }).get("k")).rejects.toMatchObject({
    code: "CLUSTER_UNREACHABLE",
    message: expect.stringContaining("the stream has no leader at the moment, or JetStream is off"),
  });
});

test("an agent leaves a server that reaches no leader for 15 s", async () => {
  using a = await leaderless("a");
  using b = await leaderless("b");
  const runtime = testRuntime({ clock: hurriedClock(20) });
  const options = clusterOptions.parse({ servers: [a.url, b.url] });
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  await using cluster = new JoinedCluster({ options, integration: "plant", node: "gw1", report }, runtime);
  const first = await eventually(() => cluster.view.server);

  expect(await eventually(() => [cluster.view.server].find((name) => name && name !== first))).toBeDefined();
  expect(await eventually(() => cluster.view.connected && !cluster.view.hasQuorum)).toBe(true);
});
