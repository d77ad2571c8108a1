// Forwards the buffer of an agent to its cluster, and delivers for all agents while it holds the lease.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Forwarder } from "../../buffer/jetstream/forwarder.ts";
import { type ClusterView, JoinedCluster } from "../../cluster/cluster.ts";
import type { ClusterOptions } from "../../cluster/options.ts";
import type { PointBuffer } from "../../core/buffer.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/back-off.ts";
import { openClusterTerm } from "./cluster-terms.ts";
import type { DeliveryTerm } from "./delivery.ts";

export interface ClusterStatus extends ClusterView {
  /** Time in which as many points arrived as are not in the stream yet; 0: none. */
  readonly forwardLagMs: number;
  readonly forwardPaused?: "full" | "unreachable";
}

export interface ClusterDeliveryParts {
  readonly options: ClusterOptions;
  readonly agent: { readonly name: string; readonly dataDir: string };
  readonly version: string;
  /** The forwarder reads it. */
  readonly buffer: PointBuffer;
  readonly integration: string;
  readonly requestsPerSecond: number;
  /** Names of the sources that this agent reads. */
  readonly reads: () => readonly string[];
}

/** Runs from its creation. */
export interface ClusterDelivery extends AsyncDisposable {
  readonly lead: (signal: AbortSignal) => Promise<DeliveryTerm>;
  readonly status: ClusterStatus;
}

export function startClusterDelivery(parts: ClusterDeliveryParts, runtime: Runtime): ClusterDelivery {
  const { options, integration, agent, version, buffer, reads } = parts;
  const { name: node, dataDir } = agent;
  const log = runtime.log.child({ part: "cluster" });
  const stop = new AbortController();
  const backOff = new BackOff({ minMs: 1_000, maxMs: 60_000, random: runtime.random });
  const bootEpoch = randomBytes(6).toString("hex");
  let forwarder: Forwarder | undefined;
  const report = () => ({
    version,
    offers: [],
    prefers: [],
    reads: [...reads()],
    forwardLagMs: forwarder?.status.lagMs ?? 0,
    backlogPoints: buffer.stats().unsettledPoints,
  });
  const cluster = new JoinedCluster({ options, integration, node, report }, runtime);
  const { stream, leases, state } = cluster;

  async function forward(): Promise<void> {
    // What was handed over for another integration must not be published again for this one.
    const directory = join(dataDir, "forwarded", integration);
    while (!stop.signal.aborted) {
      forwarder = new Forwarder({ buffer, stream, state, node, bootEpoch, directory }, runtime);
      try {
        await forwarder.run(stop.signal);
      } catch (error) {
        if (stop.signal.aborted) return;
        const waitMs = backOff.next();
        log.error({ err: error, retryInMs: Math.round(waitMs) }, "nothing is handed over, points stay in the buffer");
        await runtime.clock.sleep(waitMs, stop.signal).catch(() => {});
      }
    }
  }

  const forwarding = forward();
  const terms = {
    stream,
    leases,
    state,
    node,
    ttlMs: options.leaseTtl,
    // No method has a lower limit than one request a second.
    intervalMs: 1_000 / Math.min(1, parts.requestsPerSecond),
    mayLead: () => !cluster.members.orders.drained.has(node),
  };
  return {
    lead: (signal) => openClusterTerm(terms, runtime, signal),
    get status() {
      const { lagMs = 0, paused } = forwarder?.status ?? {};
      return { ...cluster.view, forwardLagMs: Math.round(lagMs), ...(paused && { forwardPaused: paused }) };
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await forwarding;
      await cluster[Symbol.asyncDispose]();
    },
  };
}
