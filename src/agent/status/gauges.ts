// Gauges that are set when metrics are read. While delivery fails, no event would update them.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "../process/metrics.ts";
import type { ConfigStatus, Status, UploadStatus } from "./status.ts";

type Cluster = NonNullable<Status["cluster"]>;
type Labelled = readonly [value: number, labels: Readonly<Record<string, string>>];
type Gauges<Facts> = readonly (MetricDeclaration & { readonly of: (facts: Facts) => number | readonly Labelled[] })[];

/** Undefined facts: the gauges keep their values. */
function measure<Facts>(registry: MetricsRegistry, gauges: Gauges<Facts>, facts: () => Facts | undefined): void {
  const measured = gauges.map(({ of, ...declaration }) => ({ of, gauge: registry.gauge(declaration) }));
  registry.beforeText(() => {
    const known = facts();
    if (known === undefined) return;
    for (const { of, gauge } of measured) {
      const values = of(known);
      if (typeof values === "number") gauge.set(values);
      else for (const [i, [value, labels]] of values.entries()) gauge[i === 0 ? "setOnly" : "set"](value, labels);
    }
  });
}

const buildGauges: Gauges<{ readonly version: string; readonly config: ConfigStatus }> = [
  {
    name: "build_info",
    help: "Always 1; the labels name the running program",
    labels: ["version", "node", "arch"],
    of: ({ version }) => [[1, { version, node: process.version, arch: process.arch }]],
  },
  {
    name: "config_info",
    help: "Always 1; the first 12 digits of the SHA-256 of the configuration in effect, with its includes and tables",
    labels: ["checksum"],
    of: ({ config: { checksum } }) => [[1, { checksum }]],
  },
  {
    name: "config_loaded_timestamp_seconds",
    help: "Time of the start or of the last successful reload, in seconds since 1970",
    of: ({ config }) => config.loadedAt / 1e6,
  },
  {
    name: "config_last_reload_successful",
    help: "0 after a reload that failed, else 1",
    of: ({ config }) => Number(!config.failedReload),
  },
  {
    name: "config_restart_needed",
    help: "1 while the configuration has changes that take effect only after a restart, else 0",
    of: ({ config }) => Number(config.needRestart.length > 0),
  },
];

export function measureBuild(registry: MetricsRegistry, version: string, config: () => ConfigStatus): void {
  measure(registry, buildGauges, () => ({ version, config: config() }));
}

const uploadGauges: Gauges<UploadStatus> = [
  {
    name: "upload_lag_seconds",
    help: "How late new points are: age of the oldest one that is not delivered, without the backlog of an outage",
    // Before the first delivery, everything is late by the uptime.
    of: ({ state, lagMs, backlogPoints }) =>
      (lagMs ?? (backlogPoints > 0 && state !== "standby" ? performance.now() : 0)) / 1_000,
  },
  {
    name: "upload_held",
    help: "1 while delivery is held: it waits until the operator corrects something, such as credentials; else 0",
    of: ({ state }) => Number(state === "held"),
  },
  {
    name: "upload_retrying",
    help: "1 while the service is unreachable: the last request failed and is repeated; else 0",
    of: ({ state }) => Number(state === "retrying"),
  },
  {
    name: "upload_budget_used_ratio",
    help: "Share of the permitted requests used in the last minute, 0 to 1",
    of: ({ budgetShare }) => budgetShare,
  },
  {
    name: "upload_backlog_gone_seconds",
    help: "Seconds until the backlog is gone at the rate by which it shrank in the last minute; 0: there is none, or no estimate",
    of: ({ backlog }) => (backlog.drainMs ?? 0) / 1_000,
  },
  {
    name: "upload_parked_inputs",
    help: "Inputs that the service refuses, or does not name in its answers; their points wait in the buffer",
    labels: ["reason"],
    of: ({ parkedInputs }) => [
      [parkedInputs?.refused ?? 0, { reason: "refused" }],
      [parkedInputs?.unconfirmed ?? 0, { reason: "unconfirmed" }],
    ],
  },
];

export function measureUpload(registry: MetricsRegistry, status: () => UploadStatus): void {
  measure(registry, uploadGauges, status);
}

const clusterGauges: Gauges<{ readonly cluster: Cluster; readonly agent: string }> = [
  {
    name: "cluster_connected",
    help: "1 while a NATS server is connected, else 0",
    of: ({ cluster: { connected } }) => Number(connected),
  },
  {
    name: "cluster_quorum",
    help: "1 while the leaders of the servers answer, 0 after 15 s without an answer",
    of: ({ cluster: { hasQuorum } }) => Number(hasQuorum),
  },
  {
    name: "cluster_members",
    help: "Agents of the cluster that are alive, this one among them",
    of: ({ cluster: { members } }) => members,
  },
  {
    name: "cluster_delivery_held",
    help: "1 while an agent of the cluster is known to deliver, else 0",
    of: ({ cluster: { delivers } }) => Number(delivers !== undefined),
  },
  {
    name: "cluster_delivering",
    help: "1 while this agent delivers for the cluster, else 0",
    of: ({ cluster: { delivers }, agent }) => Number(delivers === agent),
  },
  {
    name: "cluster_sources_read",
    help: "Sources that several agents can read and that this agent reads",
    of: ({ cluster, agent }) => sharedSources(cluster).filter(({ reader }) => reader === agent).length,
  },
  {
    name: "cluster_sources_unread",
    help: "Sources that several agents can read and that none is known to read",
    of: ({ cluster }) => sharedSources(cluster).filter(({ reader }) => reader === undefined).length,
  },
  {
    name: "cluster_forward_lag_seconds",
    help: "Time in which as many points arrived as are not in the stream yet",
    of: ({ cluster: { forwardLagMs } }) => forwardLagMs / 1_000,
  },
  {
    name: "cluster_forward_paused",
    help: "1 while the stream takes nothing, since it is full or the servers do not answer, else 0",
    of: ({ cluster: { forwardPaused } }) => Number(forwardPaused !== undefined),
  },
  {
    name: "cluster_stream_messages",
    help: "Messages in the stream that the agents share; 0 while it is unknown",
    of: ({ cluster: { stream } }) => stream?.messages ?? 0,
  },
  {
    name: "cluster_stream_size_bytes",
    help: "Size of the stream; 0 while it is unknown",
    of: ({ cluster: { stream } }) => stream?.bytes ?? 0,
  },
  {
    name: "cluster_stream_max_size_bytes",
    help: "Size at which the stream is full; 0 while it is unknown",
    of: ({ cluster: { stream } }) => stream?.maxBytes ?? 0,
  },
  {
    name: "cluster_stream_oldest_seconds",
    help: "Age of the oldest message in the stream; 0 while it is unknown",
    of: ({ cluster: { stream } }) => (stream?.oldestMs ?? 0) / 1_000,
  },
  {
    name: "cluster_stream_replicas",
    help: "Servers that store the stream, as configured; 0 while it is unknown",
    of: ({ cluster: { stream } }) => stream?.replicas ?? 0,
  },
  {
    name: "cluster_stream_replicas_in_place",
    help: "Servers that store the stream and are up to date; 0 while it is unknown",
    of: ({ cluster: { stream } }) => stream?.replicasInPlace ?? 0,
  },
];

/** `agent`: `agent.name`. */
export function measureCluster(registry: MetricsRegistry, agent: string, status: () => Status["cluster"]): void {
  measure(registry, clusterGauges, () => {
    const cluster = status();
    return cluster && { cluster, agent };
  });
}

function sharedSources({ agents }: Cluster): readonly { readonly reader: string | undefined }[] {
  const alive = agents.filter(({ aliveMs }) => aliveMs !== undefined);
  const names = new Set(alive.flatMap(({ offers }) => offers));
  return [...names].map((name) => ({ reader: alive.find(({ reads }) => reads.includes(name))?.node }));
}
