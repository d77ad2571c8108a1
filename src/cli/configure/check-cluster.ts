// The cluster in `tagferry check --online`: what its servers are, and whether they can hold the stream.
import { NatsLink } from "../../cluster/nats-connection.ts";
import { natsStream } from "../../cluster/nats-stream.ts";
import type { ClusterOptions } from "../../cluster/options.ts";
import type { Config } from "../../config/format/config.ts";
import { AgentError, reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { connectedWithin } from "../shared/service-caller.ts";

const oldestServer = "2.10.23";
const recommendedServer = "2.14.0";
/** Smaller differences between clocks may be due to the network. */
const toleratedMs = 1_000;

const isOlder = (version: string, than: string) => version.localeCompare(than, undefined, { numeric: true }) < 0;

/**
 * Connects to each server as the agent does, and sends nothing to the service, whose rate the agents share. Resolves with
 * text for the operator. Rejects with `CLUSTER_UNREACHABLE` if no server answers.
 */
export async function checkCluster(
  options: ClusterOptions,
  { agent, service }: Config,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const found = await Promise.all(
    options.servers.map(async (address) => {
      const one = { ...options, servers: [address] };
      const link = opened.use(new NatsLink(one, agent.name, runtime));
      try {
        await connectedWithin(link, one, signal);
        return { link, server: link.state.server ?? { name: address, version: "" } };
      } catch (error) {
        signal.throwIfAborted();
        return { reason: reasonOf(error) };
      }
    }),
  );
  const reached = found.flatMap((one) => (one.link ? [one] : []));
  const failed = found.flatMap(({ reason }) => reason ?? []);
  const [first] = reached;
  if (!first) throw new AgentError("CLUSTER_UNREACHABLE", failed.join("; "));
  const servers = new Map(reached.map(({ server }) => [server.name, server.version]));
  const versions = Array.from(servers, ([name, version]) => {
    const remark = isOlder(version, oldestServer)
      ? `, older than ${oldestServer}, the oldest that is supported`
      : isOlder(version, recommendedServer)
        ? `, 2.14 or later is recommended`
        : "";
    return `${name}, nats-server ${version}${remark}`;
  });
  const placed =
    servers.size < options.replicas
      ? [`replicas: ${options.replicas} needs as many servers, ${servers.size} reached`]
      : [];
  const stream = await ofStream(first.link, options, service.integration).catch((error: unknown) => [reasonOf(error)]);
  const rest = "sync_interval cannot be read; the service is not asked: the agents share its rate";
  return [...versions, ...failed, ...placed, ...stream, rest].join("; ");
}

async function ofStream(link: NatsLink, options: ClusterOptions, integration: string): Promise<readonly string[]> {
  const askedAt = Date.now();
  const state = await natsStream(link, options, integration).state();
  if (!state) return [];
  const { replicas, replicasInPlace, maxBytes, answeredAt } = state;
  const transitMs = Date.now() - askedAt;
  const aheadMs = answeredAt === undefined ? 0 : answeredAt - askedAt - transitMs / 2;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return [
    `the stream has ${replicasInPlace} of ${replicas} replicas in place`,
    ...(replicas === options.replicas ? [] : [`replicas is ${options.replicas} here`]),
    ...(maxBytes === options.maxSize
      ? []
      : [`maxSize is ${formatByteSize(maxBytes)} there and ${formatByteSize(options.maxSize)} here`]),
    ...(Math.abs(aheadMs) > toleratedMs + transitMs
      ? [`the clock of the server is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`]
      : []),
  ];
}
