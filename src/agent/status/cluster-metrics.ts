// Cluster metrics, measured when metrics are read.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "../process/metrics.ts";
import type { Status } from "./status.ts";

type Cluster = NonNullable<Status["cluster"]>;

const metrics = [
  {
    name: "cluster_connected",
    help: "1 while a NATS server is connected, else 0",
    of: ({ connected }) => Number(connected),
  },
  {
    name: "cluster_quorum",
    help: "1 while the leaders of the servers answer, 0 after 15 s without an answer",
    of: ({ hasQuorum }) => Number(hasQuorum),
  },
  {
    name: "cluster_members",
    help: "Agents of the cluster that are alive, this one among them",
    of: ({ members }) => members,
  },
  {
    name: "cluster_delivery_held",
    help: "1 while an agent of the cluster is known to deliver, else 0",
    of: ({ delivers }) => Number(delivers !== undefined),
  },
  {
    name: "cluster_delivering",
    help: "1 while this agent delivers for the cluster, else 0",
    of: ({ delivers }, agent) => Number(delivers === agent),
  },
  {
    name: "cluster_sources_read",
    help: "Sources that several agents can read and that this agent reads",
    of: (cluster, agent) => sharedSources(cluster).filter(({ reader }) => reader === agent).length,
  },
  {
    name: "cluster_sources_unread",
    help: "Sources that several agents can read and that none is known to read",
    of: (cluster) => sharedSources(cluster).filter(({ reader }) => reader === undefined).length,
  },
  {
    name: "cluster_forward_lag_seconds",
    help: "Time in which as many points arrived as are not in the stream yet",
    of: ({ forwardLagMs }) => forwardLagMs / 1_000,
  },
  {
    name: "cluster_forward_paused",
    help: "1 while the stream takes nothing, since it is full or the servers do not answer, else 0",
    of: ({ forwardPaused }) => Number(forwardPaused !== undefined),
  },
  {
    name: "cluster_stream_messages",
    help: "Messages in the stream that the agents share; 0 while it is unknown",
    of: ({ stream }) => stream?.messages ?? 0,
  },
  {
    name: "cluster_stream_size_bytes",
    help: "Size of the stream; 0 while it is unknown",
    of: ({ stream }) => stream?.bytes ?? 0,
  },
  {
    name: "cluster_stream_max_size_bytes",
    help: "Size at which the stream is full; 0 while it is unknown",
    of: ({ stream }) => stream?.maxBytes ?? 0,
  },
  {
    name: "cluster_stream_oldest_seconds",
    help: "Age of the oldest message in the stream; 0 while it is unknown",
    of: ({ stream }) => (stream?.oldestMs ?? 0) / 1_000,
  },
  {
    name: "cluster_stream_replicas",
    help: "Servers that store the stream, as configured; 0 while it is unknown",
    of: ({ stream }) => stream?.replicas ?? 0,
  },
  {
    name: "cluster_stream_replicas_in_place",
    help: "Servers that store the stream and are up to date; 0 while it is unknown",
    of: ({ stream }) => stream?.replicasInPlace ?? 0,
  },
] as const satisfies readonly (MetricDeclaration & { readonly of: (cluster: Cluster, agent: string) => number })[];

/** `agent`: `agent.name`. */
export function measureCluster(registry: MetricsRegistry, agent: string, status: () => Status["cluster"]): void {
  const gauges = metrics.map(({ of, ...declaration }) => ({ of, gauge: registry.gauge(declaration) }));
  registry.beforeText(() => {
    const known = status();
    if (known) for (const { of, gauge } of gauges) gauge.set(of(known, agent));
  });
}

function sharedSources({ agents }: Cluster): readonly { readonly reader: string | undefined }[] {
  const alive = agents.filter(({ aliveMs }) => aliveMs !== undefined);
  const names = new Set(alive.flatMap(({ offers }) => offers));
  return [...names].map((name) => ({ reader: alive.find(({ reads }) => reads.includes(name))?.node }));
}
