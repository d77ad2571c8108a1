// The stream and the state of the cluster on real servers.
import { natsBucket } from "../../src/cluster/connection/nats-bucket.ts";
import { NatsLink } from "../../src/cluster/connection/nats-connection.ts";
import { natsStream } from "../../src/cluster/connection/nats-stream.ts";
import { clusterOptions } from "../../src/cluster/connection/options.ts";
import { openNatsServers } from "./nats-servers.ts";
import { testRuntime } from "./runtime.ts";

export async function natsWorld({ count = 3, maxSize = 64 * 2 ** 20, syncAlways = false } = {}) {
  const cluster = await openNatsServers({ count, syncAlways });
  const parsed = clusterOptions.parse({ servers: [...cluster.urls], replicas: count });
  const link = new NatsLink(parsed, "gw1", testRuntime());
  await link.connected(AbortSignal.timeout(20_000));
  return {
    cluster,
    link,
    stream: natsStream(link, { ...parsed, maxSize }, "test"),
    state: natsBucket(link, { name: "tagferry-state-test", replicas: parsed.replicas }),
    /** Deletes the stream, as an operator may. */
    deleteStream: () =>
      link.use("delete", async ({ manager }) => void (await manager.streams.delete("tagferry-points-test"))),
    /** The name of the server that leads the stream. */
    leader: () =>
      link.use("leader", async ({ manager }) => (await manager.streams.info("tagferry-points-test")).cluster?.leader),
    async [Symbol.asyncDispose]() {
      await link[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    },
  };
}
