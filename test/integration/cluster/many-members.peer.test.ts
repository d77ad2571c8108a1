// As many members as a large plant has, on real servers.
import { expect, test } from "vitest";
import { NatsLink, natsHeartbeats } from "../../../src/cluster/connection/nats-connection.ts";
import { natsBucket } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { Membership } from "../../../src/cluster/members/membership.ts";
import { eventually } from "../../support/eventually.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";

const size = 200;
const patience = 120_000;

test("each of two hundred members sees all, again and again, and the servers keep no consumer for it", {
  timeout: 2 * patience,
}, async () => {
  await using servers = await openNatsServers();
  await using closing = new AsyncDisposableStack();
  const ended = new AbortController();
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  const members = await Promise.all(
    Array.from({ length: size }, async (_, i) => {
      const runtime = testRuntime({ seed: i });
      const link = closing.use(new NatsLink(clusterOptions.parse({ servers: servers.urls }), `gw${i}`, runtime));
      await link.connected(AbortSignal.timeout(patience));
      const state = natsBucket(link, { name: "state", replicas: 3 });
      const heartbeats = natsHeartbeats(link, "plant", runtime.clock);
      const member = new Membership({ state, heartbeats, node: `gw${i}`, report }, runtime);
      const running = member.run(ended.signal);
      closing.defer(() => {
        ended.abort();
        return running;
      });
      return member;
    }),
  );

  const seesAll = (member: Membership) => member.members.filter(({ aliveMs }) => aliveMs !== undefined).length === size;
  const since = new Map<Membership, number>();
  const lasting = new Set<Membership>();
  await eventually(() => {
    const now = performance.now();
    for (const member of members.filter(seesAll)) {
      if (!since.has(member)) since.set(member, now);
      // Consumers that remain take ten seconds to reach the limit of the servers, which then refuse each list.
      else if (now - since.get(member)! > 20_000) lasting.add(member);
    }
    return lasting.size === size;
  }, patience);

  const of = await Promise.all(servers.servers.map((server) => server.monitor("jsz")));
  expect(of).toEqual(servers.servers.map(() => expect.objectContaining({ consumers: 0 })));
});
