// Faults of three real servers: no point is lost, and almost none is delivered twice.
import { expect, test } from "vitest";
import { NatsLink } from "../../../src/cluster/connection/nats-connection.ts";
import { natsStream } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { eventually } from "../../support/eventually.ts";
import { natsWorld } from "../../support/nats-world.ts";
import { testRuntime } from "../../support/runtime.ts";
import { hastyRuntime, openReader } from "../../support/stream-place.ts";
import { append, ServiceStore, worldNode } from "../../support/stream-world.ts";

const patience = 120_000;

async function world(options: Parameters<typeof natsWorld>[0] = {}) {
  const servers = await natsWorld(options);
  const gateway = worldNode(servers.stream, servers.state, "gw 1");
  const collector = await gateway.start();
  const service = new ServiceStore();
  let second = 0;
  return {
    ...servers,
    collector,
    service,
    /** Appends points of three inputs for one second. */
    async append() {
      second++;
      await append(collector, Object.fromEntries(["a", "b", "c"].map((input) => [input, [[second, second]]])));
    },
    reader: () => eventually(() => openReader(servers.stream, servers.state), patience),
    /** Delivers until everything that was appended is stored. */
    async delivered() {
      await eventually(async () => {
        const reader = await openReader(servers.stream, servers.state);
        try {
          await service.drain(reader, () => (service.deliveries % 2 === 0 ? "live" : "backlog"));
        } finally {
          await reader[Symbol.asyncDispose]();
        }
        return service.values.size === 3 * second;
      }, patience);
    },
    async [Symbol.asyncDispose]() {
      await collector[Symbol.asyncDispose]();
      gateway[Symbol.dispose]();
      await servers[Symbol.asyncDispose]();
    },
  };
}

async function appendSome(there: Awaited<ReturnType<typeof world>>, count = 5) {
  for (let i = 0; i < count; i++) {
    await there.append();
    await there.collector.forwarded();
  }
}

test("a deleted stream gets back the undelivered points", { timeout: 2 * patience }, async () => {
  await using there = await world();
  await appendSome(there);
  await there.delivered();
  const before = there.service.deliveries;
  await appendSome(there);
  await there.deleteStream();
  await appendSome(there);
  await there.delivered();

  expect(there.collector.forwarder.status.republished).toBe(5);
  expect(there.service.deliveries - before).toBe(30);
});

test("servers that lose all their data get back the undelivered points", { timeout: 2 * patience }, async () => {
  await using there = await world();
  await appendSome(there);
  for (const server of there.cluster.servers) await server.kill();
  for (const server of there.cluster.servers) server.wipe();
  await there.append();
  for (const server of there.cluster.servers) await server.start();
  await there.cluster.healthy();
  await there.delivered();

  expect(there.service.deliveries).toBe(18);
});

test("all points are delivered although the leader is killed with its data meanwhile", {
  timeout: 2 * patience,
}, async () => {
  await using there = await world();
  await appendSome(there);
  const name = await there.leader();
  const leader = there.cluster.servers.find((server) => server.name === name)!;
  await leader.kill();
  leader.wipe();
  for (let i = 0; i < 20; i++) await there.append();
  await there.delivered();
  await leader.start();
  await there.cluster.healthy();
  await there.append();
  await there.delivered();

  expect(there.service.deliveries).toBe(3 * 26);
});

test("a stream at maxSize pauses forwarding until points are delivered", {
  timeout: 2 * patience,
}, async () => {
  await using there = await world({ maxSize: 2 ** 20 });
  const random = (seconds: number) =>
    Array.from({ length: 20_000 }, (_, i) => [seconds + i * 1e-6, Math.random()] as const);
  // Random values take 7 bytes per point.
  const forwarder = there.collector.forwarder;
  for (let i = 0; i < 10; i++) await append(there.collector, { noise: random(i) });
  await eventually(() => forwarder.status.paused === "full");
  const waiting = there.collector.local.stats().unsettledPoints;
  expect(waiting).toBeGreaterThan(0);
  await using reader = await there.reader();
  await eventually(async () => {
    await there.service.drain(reader);
    return forwarder.status.paused === undefined && there.collector.local.stats().unsettledPoints === 0;
  }, patience);
});

test("the end of the stream is published again when the servers lose it", { timeout: 2 * patience }, async () => {
  await using there = await world();
  await appendSome(there);
  // Messages may be missing after an operator deleted them or restored a backup. The sequence numbers continue after
  // the hole.
  const state = (await there.stream.state())!;
  await there.link.use("delete", async ({ manager }) => {
    for (const sequence of [state.lastSequence - 1, state.lastSequence])
      await manager.streams.deleteMessage("tagferry-points-test", sequence);
  });
  await appendSome(there);
  await there.delivered();

  expect(there.collector.forwarder.status.republished).toBe(2);
  expect(there.service.deliveries).toBe(30);
});

test("a leader that is cut off and answers late makes no delivered message count as lost", {
  timeout: 3 * patience,
}, async () => {
  await using there = await world();
  await appendSome(there);
  const name = await there.leader();
  const leader = there.cluster.servers.find((server) => server.name === name)!;
  await using link = new NatsLink(clusterOptions.parse({ servers: [leader.url] }), "cut off", testRuntime());
  await link.connected(AbortSignal.timeout(patience));
  const cutOff = natsStream(link, clusterOptions.parse({ servers: [leader.url] }), "test");
  leader.isolate();
  const old = await cutOff.state();
  // The agents leave a server that reaches no other one.
  await eventually(() => {
    const { isConnected, server } = there.link.state;
    if (isConnected && server?.name === name) there.link.changeServer();
    return isConnected && server?.name !== name;
  }, patience);
  await eventually(async () => ![undefined, name].includes(await there.leader()), patience);
  const former = await there.reader();
  await eventually(async () => {
    await there.service.drain(former);
    return (await there.stream.state())?.messages === 0;
  }, patience);
  // The record of what is settled forgets the positions that were removed.
  await appendSome(there, 1);
  await there.service.drain(former);
  await former[Symbol.asyncDispose]();
  await appendSome(there, 1);
  const runtime = hastyRuntime();
  let asked = 0;
  const state = async () => (asked++ < 2 ? old : await there.stream.state());
  await using reader = await openReader({ ...there.stream, state }, there.state, runtime);
  await eventually(async () => {
    await there.service.drain(reader);
    return there.service.values.size === 21;
  }, patience);

  expect(runtime.metric("cluster_lost_messages_total")).toBe(0);
  expect(there.service.deliveries).toBe(21);
  // It has learned that it does not lead.
  const refuses = () =>
    cutOff.state().then(
      () => false,
      (error: Error) => error.message.includes("no leader"),
    );
  await eventually(refuses, patience);
});
