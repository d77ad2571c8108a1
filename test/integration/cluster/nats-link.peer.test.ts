// The connection, the buckets and the leases of a cluster, on real servers.
import { afterAll, beforeAll, expect, test } from "vitest";
import { subjectOf } from "../../../src/buffer/jetstream/stream-names.ts";
import { JoinedCluster } from "../../../src/cluster/cluster.ts";
import type { Broadcast, KeyBucket } from "../../../src/cluster/connection/jetstream.ts";
import { NatsLink, natsHeartbeats } from "../../../src/cluster/connection/nats-connection.ts";
import { natsBucket, natsStream } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { acquireLease } from "../../../src/cluster/leases/lease.ts";
import { Membership } from "../../../src/cluster/members/membership.ts";
import { eventually } from "../../support/eventually.ts";
import { type NatsServer, type NatsServers, openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tcpProxy } from "../../support/tcp-proxy.ts";

const never = new AbortController().signal;
const bytes = (text: string) => Buffer.from(text);
let servers: NatsServers;
beforeAll(async () => {
  servers = await openNatsServers();
}, 60_000);
afterAll(() => servers[Symbol.asyncDispose]());

async function connect(urls: readonly string[] = servers.urls) {
  const runtime = testRuntime();
  const link = new NatsLink(clusterOptions.parse({ servers: urls }), "test", runtime);
  await link.connected(AbortSignal.timeout(30_000));
  return { link, runtime };
}

/**
 * Revision of the first entry in a bucket that may have no leader yet: servers that have just formed a cluster, or just
 * placed the bucket, refuse each write until it has one.
 */
function firstEntry(bucket: KeyBucket, key: string, value = "x"): Promise<number> {
  return eventually(() => bucket.create(key, bytes(value)));
}

/** The server that leads a stream, as the other servers report it. */
async function leaderOf(link: NatsLink, stream: string) {
  const { cluster } = await link.use("info", ({ manager }) => manager.streams.info(stream));
  return servers.servers.find(({ name }) => name === cluster?.leader);
}

test("listing a bucket creates no consumer, which would remain if its deletion is lost", {
  timeout: 60_000,
}, async () => {
  const { link } = await connect();
  await using _link = link;
  const bucket = natsBucket(link, { name: "listed", replicas: 3 });
  await firstEntry(bucket, "a.1");
  const created = await link.use("subscribe", async ({ connection }) => {
    const advisories = connection.subscribe("$JS.EVENT.ADVISORY.CONSUMER.CREATED.>");
    await connection.flush();
    return advisories;
  });

  expect(await bucket.list("a.")).toHaveLength(1);

  // The servers answer this request after they have sent the advisory, if they send one.
  await bucket.get("a.1");
  await link.use("flush", ({ connection }) => connection.flush());
  expect(created.getReceived()).toBe(0);
});

test("a bucket that did not answer in time is not opened again at the next call", { timeout: 120_000 }, async () => {
  const [own, ...others] = servers.servers;
  const { link } = await connect(own && [own.url]);
  await using _link = link;
  const bucket = natsBucket(link, { name: "kept", replicas: 3 });
  const entry = await firstEntry(bucket, "k");
  const opened = await link.use("subscribe", async ({ connection }) => {
    // Opening a bucket asks for the account first.
    const requests = connection.subscribe("$JS.API.INFO");
    await connection.flush();
    return requests;
  });
  // Without a quorum no server answers, whichever leads the bucket by now.
  await Promise.all(others.map((server) => server.suspend()));
  try {
    await expect(bucket.update("k", bytes("y"), entry, 300)).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
  } finally {
    for (const server of others) server.resume();
  }

  // Only the leader of all streams answers that, and a renewal of a lease would wait for it.
  expect(await eventually(() => bucket.get("k"))).toMatchObject({ key: "k" });
  await link.use("flush", ({ connection }) => connection.flush());
  expect(opened.getReceived()).toBe(0);
});

test("a call that the servers never answer rejects", { timeout: 60_000 }, async () => {
  const { link } = await connect();
  await using _link = link;
  // Like listing a bucket whose server disappears during the list.
  const endless = link.use("list", () => new Promise<never>(() => {}));
  await expect(endless).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
});

test("integrations share no points on the same servers", { timeout: 60_000 }, async () => {
  const { link } = await connect();
  await using _link = link;
  const options = clusterOptions.parse({ servers: servers.urls });
  const [north, south] = ["north", "south"].map((integration) => natsStream(link, options, integration));
  await eventually(() =>
    Promise.all([north!.create(), south!.create()]).then(
      () => true,
      () => false,
    ),
  );
  const subject = subjectOf(north!, "gw1");
  await eventually(() => north!.publish(subject, bytes("1"), "gw1-1", 0).catch(() => undefined));
  expect(await north!.subjects()).toEqual([subject]);
  expect([await south!.subjects(), await south!.last(subjectOf(south!, "gw1"))]).toEqual([[], undefined]);
});

test("a bucket writes by revision, and reports a different revision", { timeout: 60_000 }, async () => {
  const { link } = await connect();
  await using _link = link;
  const bucket = natsBucket(link, { name: "semantics", replicas: 3 });
  const first = await firstEntry(bucket, "a.x", "1");
  expect(first).toBeGreaterThan(0);
  expect(await bucket.create("a.x", bytes("2"))).toBeUndefined();
  expect(await bucket.update("a.x", bytes("2"), first + 7)).toBeUndefined();
  const second = await bucket.update("a.x", bytes("2"), first);
  expect(second).toBeGreaterThan(first);
  await bucket.create("b.x", bytes("3"));
  expect((await bucket.list("a.")).map(({ key, value }) => `${key}=${Buffer.from(value).toString()}`)).toEqual([
    "a.x=2",
  ]);
  expect(await bucket.delete("a.x", first)).toBe(false);
  expect(await bucket.delete("a.x", second!)).toBe(true);
  expect(await bucket.get("a.x")).toBeUndefined();
  expect(await bucket.list("a.")).toEqual([]);
  expect(await bucket.create("a.x", bytes("4"))).toBeGreaterThan(second!);
});

test("a lost connection refuses calls at once and comes back at another server", { timeout: 60_000 }, async () => {
  const { link } = await connect();
  await using _link = link;
  const bucket = natsBucket(link, { name: "reconnect", replicas: 3 });
  const revision = await firstEntry(bucket, "k");
  const { name } = link.state.server!;
  const server = servers.servers.find((one) => one.name === name)!;
  await server.kill();
  await eventually(() => link.state.server?.name !== name && link.state.isConnected);
  // The stopped server may have led the bucket. The remaining servers then elect a new leader first.
  expect(await eventually(() => bucket.update("k", bytes("2"), revision).catch(() => undefined))).toBeGreaterThan(
    revision,
  );
  await server.start();
  await servers.healthy();
});

test("an agent that cannot reach the servers refuses calls and keeps trying", { timeout: 60_000 }, async () => {
  const proxy = await tcpProxy(servers.servers[0]!.port);
  await using _proxy = proxy;
  const runtime = testRuntime();
  proxy.cut();
  const options = clusterOptions.parse({ servers: [`nats://127.0.0.1:${proxy.port}`] });
  await using link = new NatsLink(options, "test", runtime);
  const bucket = natsBucket(link, { name: "away", replicas: 3 });
  await expect(bucket.get("k")).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
  await eventually(() => runtime.lines.some(({ message }) => message === "cannot connect to the cluster"));
  proxy.restore();
  await link.connected(AbortSignal.timeout(30_000));
  expect(await bucket.get("k")).toBeUndefined();
});

test("the lease passes to another agent when its holder is partitioned, and the holder's term ends", {
  timeout: 60_000,
}, async () => {
  const [a, b] = await Promise.all([connect(), connect()]);
  await using _a = a.link;
  await using _b = b.link;
  const lease = ({ link, runtime }: typeof a, node: string) =>
    acquireLease(
      {
        bucket: natsBucket(link, { name: "leases", replicas: 3, ttlMs: 3_000 }),
        key: "delivery",
        node,
        ttlMs: 3_000,
        ifMissing: "take",
      },
      runtime,
      never,
    );
  const first = await lease(a, "a");
  const second = lease(b, "b");
  expect(await first.renew()).toBeGreaterThan(0);
  await a.link[Symbol.asyncDispose]();
  const term = await second;
  expect(term.generation).toBeGreaterThan(first.generation);
  await eventually(() => first.signal.aborted);
  await expect(first.renew()).resolves.toBeUndefined();
});

test.each(["kill", "suspend"] as const)(
  "a term outlasts the %s of the server that leads the lease",
  { timeout: 90_000 },
  async (fault) => {
    const { link, runtime } = await connect();
    await using _link = link;
    const bucket = natsBucket(link, { name: `outlasts-${fault}`, replicas: 3 });
    const term = await acquireLease(
      { bucket, key: "delivery", node: "a", ttlMs: 30_000, ifMissing: "take" },
      runtime,
      never,
    );
    const leader = (await leaderOf(link, `KV_outlasts-${fault}`))!;
    await leader[fault]();
    expect(await eventually(() => term.renew().catch(() => undefined))).toBeGreaterThan(0);
    expect(term.signal.aborted).toBe(false);
    if (fault === "kill") await leader.start();
    else leader.resume();
    await servers.healthy();
    await term.release();
  },
);

test("a heartbeat of a killed agent that a suspended server delivers late is not one of another agent", {
  timeout: 180_000,
}, async () => {
  const [slow, fast] = [servers.servers[0]!, servers.servers[1]!];
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  const join = async ({ url }: NatsServer, node: string) => {
    const { link, runtime } = await connect([url]);
    const heartbeats = natsHeartbeats(link, "late", runtime.clock);
    const sent: string[] = [];
    const heard: string[] = [];
    const noted: Broadcast = {
      send(data) {
        sent.push(String(data));
        heartbeats.send(data);
      },
      listen: (take, signal) =>
        heartbeats.listen((data) => {
          heard.push(Buffer.from(data).toString());
          take(data);
        }, signal),
    };
    const state = natsBucket(link, { name: "late", replicas: 3 });
    const member = new Membership({ state, heartbeats: noted, node, report }, runtime);
    const stop = new AbortController();
    const running = member.run(stop.signal);
    return {
      member,
      sent,
      heard,
      async [Symbol.asyncDispose]() {
        stop.abort();
        await link[Symbol.asyncDispose]();
        await running;
      },
    };
  };
  await using other = await join(fast, "gw2");
  const former = await join(slow, "gw1");
  // Then the servers know that there is a receiver at the other one.
  await eventually(() => other.heard.includes(former.sent.at(-1)!), 60_000);
  await slow.suspend();
  const before = former.sent.length;
  await eventually(() => former.sent.length > before);
  const late = former.sent[before]!;
  await former[Symbol.asyncDispose]();
  await using successor = await join(fast, "gw1");
  await eventually(() => successor.heard.includes(successor.sent.at(-1)!), 60_000);
  slow.resume();
  await eventually(() => successor.heard.includes(late), 60_000);

  expect(successor.member.hasNamesake).toBe(false);
  await using clone = await join(fast, "gw1");
  await eventually(() => successor.member.hasNamesake && clone.member.hasNamesake, 60_000);
  await servers.healthy();
});

test("an agent leaves a server that is partitioned from the others, and goes on at one that reaches a leader", {
  timeout: 240_000,
}, async () => {
  const options = clusterOptions.parse({ servers: servers.urls });
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  await using cluster = new JoinedCluster({ options, integration: "plant", node: "gw1", report }, testRuntime());
  await eventually(() => cluster.members.isKnown, 60_000);
  const server = servers.servers.find(({ name }) => name === cluster.view.server)!;
  server.isolate();
  try {
    await eventually(() => cluster.view.connected && cluster.view.server !== server.name, 120_000);
    await eventually(() => cluster.leases.create("after", bytes("x")).then(() => true), 60_000);
    expect(cluster.view.server).not.toBe(server.name);
  } finally {
    server.rejoin();
  }
});
