// The faults of the cluster drill: one row per fault, each of which repairs itself.

import type { DrillService } from "./cluster-drill-service.ts";
import { eventually } from "./eventually.ts";
import type { DeckFault } from "./fault-deck.ts";
import type { NatsServer, NatsServers } from "./nats-servers.ts";
import { patienceMs, type RestartableAgent } from "./restartable-agent.ts";
import type { TcpProxy } from "./tcp-proxy.ts";

export interface DrillAgent {
  readonly name: string;
  readonly process: RestartableAgent;
  /** A proxy to each of the servers. */
  readonly network: readonly TcpProxy[];
}

export interface ClusterDrillWorld {
  readonly agents: readonly DrillAgent[];
  readonly cluster: NatsServers;
  readonly service: DrillService;
  readonly random: () => number;
  /**
   * Resolves after 0.2 to 3 s, or in half of the cases after 7 to 12 s, which is longer than a lease and an election.
   */
  readonly while: () => Promise<void>;
  /** The agent that has the lease. */
  readonly delivering: () => Promise<DrillAgent>;
  /** The server that leads the stream. */
  readonly leader: () => Promise<NatsServer>;
  /**
   * Sets `max_bytes` of the stream to what it has and this many bytes more, unless it is limited already. Undefined: as
   * configured. An agent that begins to deliver also sets it as configured.
   */
  readonly limitStream: (moreBytes: number | undefined) => Promise<void>;
  /** Deletes the stream of points, or the bucket of the leases. */
  readonly deleteStream: (which: "points" | "leases") => Promise<void>;
  /** Milliseconds from the death of the delivering agent to the next insert. */
  readonly takeovers: number[];
}

export interface ClusterDrillFault extends DeckFault {
  readonly part: "agents" | "servers" | "network" | "service";
  run(world: ClusterDrillWorld): Promise<void>;
}

export const clusterDrillFaults: readonly ClusterDrillFault[] = [
  {
    name: "delivering agent killed",
    part: "agents",
    async run(world) {
      const { process } = await world.delivering();
      await process.kill();
      const killedAt = performance.now();
      const next = world.service.nextInsert().then((start) => world.takeovers.push(Math.round(start - killedAt)));
      await world.while();
      await process.start();
      await next;
    },
  },
  {
    name: "delivering agent suspended",
    part: "agents",
    run: async (world) => suspended((await world.delivering()).process, world),
  },
  {
    name: "collector killed",
    part: "agents",
    async run(world) {
      const { process } = await collector(world);
      await process.kill();
      await world.while();
      await process.start();
    },
  },
  {
    name: "collector suspended",
    part: "agents",
    run: async (world) => suspended((await collector(world)).process, world),
  },
  {
    name: "delivering agent stopped",
    part: "agents",
    async run(world) {
      const { process } = await world.delivering();
      await process.stop();
      await world.while();
      await process.start();
    },
  },
  {
    name: "leader of the stream killed",
    part: "servers",
    run: async (world) => killed([await world.leader()], world),
  },
  {
    name: "leader of the stream suspended",
    part: "servers",
    run: async (world) => suspended(await world.leader(), world),
  },
  { name: "server killed", part: "servers", run: (world) => killed([anyOf(world.cluster.servers, world)], world) },
  { name: "server suspended", part: "servers", run: (world) => suspended(anyOf(world.cluster.servers, world), world) },
  {
    name: "two servers killed",
    part: "servers",
    run: (world) => killed(except(world.cluster.servers, anyOf(world.cluster.servers, world)), world),
  },
  { name: "all servers killed", part: "servers", run: (world) => killed(world.cluster.servers, world) },
  { name: "stream deleted", part: "servers", run: (world) => world.deleteStream("points") },
  { name: "leases deleted", part: "servers", run: (world) => world.deleteStream("leases") },
  {
    name: "data of a server deleted",
    part: "servers",
    async run(world) {
      const server = anyOf(world.cluster.servers, world);
      await server.kill();
      server.wipe();
      await world.while();
      await server.start();
    },
  },
  {
    name: "server cut off from the other servers",
    part: "servers",
    async run(world) {
      const server = anyOf(world.cluster.servers, world);
      server.isolate();
      await world.while();
      server.rejoin();
    },
  },
  {
    name: "leader of the stream cut off from one server",
    part: "servers",
    async run(world) {
      const server = await world.leader();
      server.isolate(anyOf(except(world.cluster.servers, server), world));
      await world.while();
      server.rejoin();
    },
  },
  network("agent cut off from the servers", "cut"),
  network("answers of the servers lost", "muteDevice"),
  network("answers of the servers late", "slowDevice"),
  {
    name: "delivering agent cut off from the servers",
    part: "network",
    run: async (world) => disturbed((await world.delivering()).network, "cut", world),
  },
  {
    name: "service refuses connections",
    part: "service",
    async run({ service, ...world }) {
      service.pause();
      await world.while();
      service.resume();
    },
  },
  {
    name: "answer of the service lost",
    part: "service",
    run: ({ service }) => service.cutNext(),
  },
  {
    name: "stream full",
    part: "service",
    async run({ service, agents, ...world }) {
      service.pause();
      await eventually(async () => {
        await world.limitStream(20_000);
        const paused = agents.map(async ({ process }) => (await process.status()).cluster?.forwardPaused === "full");
        return (await Promise.allSettled(paused)).some((one) => one.status === "fulfilled" && one.value);
      }, patienceMs);
      await world.while();
      service.resume();
      await world.while();
      await world.limitStream(undefined);
    },
  },
];

type NetworkFault = "cut" | "muteDevice" | "slowDevice";

function network(name: string, how: NetworkFault): ClusterDrillFault {
  return { name, part: "network", run: (world) => disturbed(anyOf(world.agents, world).network, how, world) };
}

async function disturbed(proxies: readonly TcpProxy[], how: NetworkFault, world: ClusterDrillWorld): Promise<void> {
  for (const proxy of proxies) proxy[how]();
  await world.while();
  for (const proxy of proxies) {
    proxy.cut();
    proxy.restore();
  }
}

async function suspended(
  process: Pick<RestartableAgent, "suspend" | "resume">,
  world: Pick<ClusterDrillWorld, "while">,
): Promise<void> {
  await process.suspend();
  await world.while();
  process.resume();
}

async function killed(servers: readonly NatsServer[], world: ClusterDrillWorld): Promise<void> {
  await Promise.all(servers.map((server) => server.kill()));
  await world.while();
  await Promise.all(servers.map((server) => server.start()));
}

async function collector(world: ClusterDrillWorld): Promise<DrillAgent> {
  return anyOf(except(world.agents, await world.delivering()), world);
}

const except = <T>(all: readonly T[], one: T) => all.filter((other) => other !== one);

function anyOf<T>(all: readonly T[], { random }: Pick<ClusterDrillWorld, "random">): T {
  return all[Math.floor(random() * all.length)]!;
}
