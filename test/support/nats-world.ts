// The stream and the state of the cluster on real servers.

import { NatsLink } from "../../src/cluster/connection/nats-connection.ts";
import { natsBucket, natsStream } from "../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../src/cluster/connection/options.ts";
import { openNatsServers } from "./nats-servers.ts";
import { testRuntime } from "./runtime.ts";

export type NatsWorld = Awaited<ReturnType<typeof natsWorld>>;

export async function natsWorld({ count = 3, maxSize = 64 * 2 ** 20, syncAlways = false, integration = "test" } = {}) {
  const points = `tagferry-points-${integration}`;
  const cluster = await openNatsServers({ count, syncAlways });
  const parsed = clusterOptions.parse({ servers: [...cluster.urls], replicas: count });
  const link = new NatsLink(parsed, "gw1", testRuntime());
  await link.connected(AbortSignal.timeout(20_000));
  return {
    cluster,
    link,
    stream: natsStream(link, { ...parsed, maxSize }, integration),
    state: natsBucket(link, { name: `tagferry-state-${integration}`, replicas: parsed.replicas }),
    /** Deletes the stream, as an operator may. */
    deleteStream: () => link.use("delete", async ({ manager }) => void (await manager.streams.delete(points))),
    /** The name of the server that leads the stream. */
    leader: () => link.use("leader", async ({ manager }) => (await manager.streams.info(points)).cluster?.leader),
    async [Symbol.asyncDispose]() {
      await link[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    },
  };
}
