// Forwards the buffer of an agent to its cluster, and delivers for all agents while it holds the lease.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Forwarder } from "../../buffer/jetstream/forwarder.ts";
import { type ClusterView, JoinedCluster } from "../../cluster/cluster.ts";
import type { PointStream } from "../../cluster/connection/jetstream.ts";
import type { ClusterOptions } from "../../cluster/connection/options.ts";
import { mayDeliver } from "../../cluster/members/placement.ts";
import { PublishedSignals } from "../../cluster/signals/published-signals.ts";
import { SharedSignals } from "../../cluster/signals/shared-signals.ts";
import type { BufferStats, Loss, PointBuffer } from "../../core/buffer.ts";
import { isAgentError } from "../../core/errors.ts";
import type { Clock, Runtime } from "../../core/runtime.ts";
import type { SignalCatalog } from "../../core/signal.ts";
import { whenAborted } from "../../lib/flow/abort.ts";
import { BackOff, repeat } from "../../lib/flow/repeat.ts";
import { acceptsConnections, peerOf } from "../../upload/client/http-post.ts";
import type { ServiceOptions } from "../../upload/client/options.ts";
import { type ClusterSources, type ClusterSourcesOptions, clusterSources } from "./cluster-sources.ts";
import { giveTurns, openClusterTerm, type ServiceReach, serviceReach } from "./cluster-terms.ts";
import type { DeliveryTerm } from "./delivery.ts";

export interface ClusterStatus extends ClusterView {
  /** Time in which as many points arrived as are not in the stream yet; 0: none. */
  readonly forwardLagMs: number;
  readonly forwardPaused?: "full" | "unreachable";
}

interface ClusterDeliveryParts {
  readonly options: ClusterOptions;
  readonly agent: { readonly name: string; readonly dataDir: string };
  readonly version: string;
  /** The forwarder reads it. */
  readonly buffer: PointBuffer;
  readonly service: Pick<ServiceOptions, "url" | "proxy" | "integration" | "limits">;
  readonly catalog: SignalCatalog;
  /** Whether the agent's configuration has the input or can create it. */
  readonly configured: (input: string) => boolean;
}

export type ClusterDelivery = ReturnType<typeof startClusterDelivery>;

const signalsEveryMs = 2_000;
const adaptEveryMs = 60_000;

/** The agent that delivers gives the stream its configured limits: agents with different ones do not take turns in it. */
function adaptStream(stream: PointStream, runtime: Runtime): AsyncDisposable {
  const log = runtime.log.child({ part: "cluster" });
  let before = "";
  async function adapt(): Promise<void> {
    try {
      const { changed, kept } = await stream.adapt();
      if (changed.length > 0) log.info({ limits: changed.join(", ") }, "the stream has the configured limits now");
      const now = kept.join(", ");
      if (now !== before && now !== "")
        log.warn({ limits: now }, "the stream keeps these limits, since the configured ones would drop messages");
      before = now;
    } catch (error) {
      if (!isAgentError(error)) throw error;
      if (before !== error.message) log.warn({ reason: error.message }, "the stream cannot get the configured limits");
      before = error.message;
    }
  }
  const failure = "the limits of the stream are no longer maintained";
  return repeat(adapt, { everyMs: adaptEveryMs, first: "now", failure }, runtime);
}

/**
 * Resolves once the catalog has the metadata of all agents, or at once if the servers do not answer or `signal` aborts:
 * then the term has ended, as the caller learns from its signal.
 */
export async function followSignals(
  shared: Pick<SharedSignals, "open" | "refresh">,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  let isOpen = false;
  async function read(): Promise<void> {
    try {
      await (isOpen ? shared.refresh() : shared.open());
      isOpen = true;
    } catch (error) {
      if (!isAgentError(error)) throw error;
    }
  }
  await Promise.race([read(), whenAborted(signal)]);
  const failure = "metadata of the other agents is not read any more";
  return repeat(read, { everyMs: signalsEveryMs, first: "later", failure }, runtime);
}

/** Runs from its creation. */
export function startClusterDelivery(parts: ClusterDeliveryParts, runtime: Runtime) {
  const { options, agent, version, buffer, catalog, configured, service } = parts;
  const { name: node, dataDir } = agent;
  const { integration, url, proxy } = service;
  const { requestsPerSecond } = service.limits;
  const log = runtime.log.child({ part: "cluster" });
  const stop = new AbortController();
  const backOff = new BackOff({ minMs: 1_000, maxMs: 60_000, random: runtime.random });
  const bootEpoch = randomBytes(6).toString("hex");
  let forwarder: Forwarder | undefined;
  let hasTakenOver = false;
  let isFailing = () => false;
  // Set below: the cluster asks for its first report before.
  const published: { signals?: PublishedSignals; reach?: ServiceReach } = {};
  let sources: ClusterSources | undefined;
  const report = () => ({
    version,
    ...(sources?.report ?? { offers: [], prefers: [], reads: [] }),
    forwardLagMs: forwarder?.status.lagMs ?? 0,
    backlogPoints: buffer.stats().unsettledPoints,
    reachesService: published.reach?.reaches,
    ...(published.signals?.mark !== undefined && { signals: published.signals.mark }),
  });
  const cluster = new JoinedCluster({ options, integration, node, report }, runtime);
  const { stream, leases, state, members } = cluster;
  const signals = new PublishedSignals({ state, node, catalog, configured }, runtime);
  published.signals = signals;
  const isAsked = () => members.candidates.some((one) => one.node !== node && one.reachesService === false);
  const connects = (signal: AbortSignal) => acceptsConnections(peerOf(url, proxy), signal);
  const reach = serviceReach({ isFailing: () => isFailing(), isAsked, connects }, runtime);
  published.reach = reach;
  const shared = new SharedSignals({ state, members, catalog });

  async function forward(): Promise<void> {
    // What was handed over for another integration must not be published again for this one.
    const directory = join(dataDir, "forwarded", integration);
    while (!stop.signal.aborted) {
      forwarder = new Forwarder({ buffer, stream, state, node, bootEpoch, directory }, runtime);
      if (hasTakenOver) forwarder.sourceMoved();
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

  const running = Promise.all([forward(), signals.run(stop.signal)]);
  const terms = {
    stream,
    leases,
    state,
    node,
    ttlMs: options.leaseTtl,
    // No method has a lower limit than one request a second.
    intervalMs: 1_000 / Math.min(1, requestsPerSecond),
    mayLead: () => {
      const { isKnown, candidates, orders } = cluster.members;
      return isKnown && mayDeliver(node, candidates, orders);
    },
  };
  return {
    /** Where sources describe their signals, so that the agent that delivers saves them. */
    signals,
    /** Whether any agent of the cluster describes the input. */
    configured: (input: string): boolean => configured(input) || shared.has(input),
    /** As `DeliveryParts.lead`. */
    lead: async (signal: AbortSignal, deliveryFails: () => boolean): Promise<Required<DeliveryTerm>> => {
      isFailing = deliveryFails;
      await using opened = new AsyncDisposableStack();
      const term = opened.use(await openClusterTerm(terms, runtime, signal));
      opened.use(await followSignals(shared, runtime, term.signal));
      opened.use(adaptStream(stream, runtime));
      const turns = {
        channel: cluster.requests,
        gate: term.gate,
        stateDir: join(dataDir, "upload"),
        requestsPerSecond,
      };
      const answering = new AbortController();
      const answered = giveTurns(turns, runtime, AbortSignal.any([signal, term.signal, answering.signal]));
      opened.defer(async () => {
        answering.abort(new Error("the term is over"));
        await answered;
      });
      const owned = opened.move();
      return { ...term, [Symbol.asyncDispose]: () => owned.disposeAsync() };
    },
    /** Reads the sources that several agents can read while this agent holds their leases. Call it once. */
    readSources(read: ClusterSourcesOptions["sources"]): ClusterSources {
      const { leaseTtl: ttlMs } = options;
      const onTakeover = () => {
        hasTakenOver = true;
        forwarder?.sourceMoved();
      };
      const isPaused = () => forwarder?.status.paused !== undefined;
      const calls = { handOver: () => handOver(buffer, isPaused, runtime.clock, stop.signal), onTakeover };
      const given = { cluster, node, ttlMs, dataDir, identity: integration, sources: read, ...calls };
      sources = clusterSources(given, runtime);
      return sources;
    },
    /** Points of this agent that the cluster has dropped before they were delivered. Undefined: none. */
    get loss(): Loss | undefined {
      return forwarder?.status.loss;
    },
    get status(): ClusterStatus {
      const { lagMs = 0, paused } = forwarder?.status ?? {};
      return {
        ...cluster.view,
        forwardLagMs: Math.round(lagMs),
        ...(paused && { forwardPaused: paused }),
      };
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort(new Error("the agent stops"));
      await Promise.all([running, reach[Symbol.asyncDispose]()]);
      await cluster[Symbol.asyncDispose]();
    },
  };
}

/** Longest wait of a source that stops for its last points to reach the stream. */
const longestMs = 2_000;
const lookMs = 20;

/**
 * Resolves once as many points of `buffer` are settled as waited at the call, after 2 s at the latest, and at once if
 * forwarding is paused. Never rejects.
 */
export async function handOver(
  buffer: { stats(): Pick<BufferStats, "settledPoints" | "unsettledPoints"> },
  isPaused: () => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { settledPoints, unsettledPoints } = buffer.stats();
  const until = clock.monotonic() + longestMs;
  const isWaiting = () => buffer.stats().settledPoints < settledPoints + unsettledPoints;
  while (isWaiting() && !isPaused() && !signal.aborted && clock.monotonic() < until)
    await clock.sleep(lookMs, signal).catch(() => {});
}
