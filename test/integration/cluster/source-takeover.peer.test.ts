// The order of the values of a source that one agent after the other reads, on a real server.
import { expect, test } from "vitest";
import { type ClusterDelivery, startClusterDelivery } from "../../../src/agent/upkeep/cluster-delivery.ts";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { clusterBuckets } from "../../../src/cluster/cluster.ts";
import { NatsLink } from "../../../src/cluster/connection/nats-connection.ts";
import { natsStream } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { inProcess } from "../../support/disk-store.ts";
import { eventually } from "../../support/eventually.ts";
import { MemoryDisk } from "../../support/memory-disk.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";
import { integration, password } from "../../support/service.ts";
import { lineWith, Reading } from "../../support/shared-source.ts";
import { openReader } from "../../support/stream-place.ts";
import { append, type Points, ServiceStore } from "../../support/stream-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const never = new AbortController().signal;
const patience = 60_000;

test("of two values of one time, the one of the agent that has taken the source over is stored", async () => {
  using folder = temporaryFolder();
  await using servers = await openNatsServers({ count: 1 });
  const options = clusterOptions.parse({ servers: [...servers.urls], replicas: 1 });
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  const line = await lineWith("anywhere");
  const reads = async (node: string, points: Points) => {
    const runtime = testRuntime();
    const dataDir = folder.file(node);
    const where = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 2 ** 20 };
    await using buffer = await openDiskBuffer(where, runtime, never, inProcess(new MemoryDisk()));
    const catalog = { describe: () => {} };
    const agent = { name: node, dataDir };
    const service = serviceOptions.parse({ url: "http://127.0.0.1:1/v1", integration, auth: { basic: { password } } });
    const parts = { options, agent, version: "1", buffer, service, catalog };
    await using cluster: ClusterDelivery = startClusterDelivery({ ...parts, configured: () => true }, runtime);
    const reading = new Reading(() => append({ local: buffer }, points));
    await using sources = cluster.readSources(reading);
    await sources.change([line]);
    // It stops as soon as it has read: its last points reach the stream before the next agent reads.
    await eventually(() => reading.running.length > 0, patience);
  };
  await reads("gw1", { a: [[10, 1]] });
  await reads("gw2", { a: [[10, 2]] });
  const link = new NatsLink(options, "test", testRuntime());
  await using _link = link;
  await link.connected(AbortSignal.timeout(patience));
  const service = new ServiceStore();
  const { state } = clusterBuckets(link, options, integration);
  await using reader = await openReader(natsStream(link, options, integration), state, testRuntime());
  await service.drain(reader, () => "live", 1);

  expect(Object.fromEntries(service.values)).toEqual({ "a@10": 2 });
});
