// The cluster from the view of one agent: the shared stream and buckets, the members, and the delivering agent.
import { reasonOf } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import type { KeyBucket, PointStream, RequestChannel, StreamState } from "./connection/jetstream.ts";
import { NatsLink, natsHeartbeats, natsRequests } from "./connection/nats-connection.ts";
import { natsBucket, natsStream } from "./connection/nats-jetstream.ts";
import type { ClusterOptions } from "./connection/options.ts";
import { deliveryLease, holderOf } from "./leases/lease.ts";
import { type Member, type MemberReport, Membership } from "./members/membership.ts";

export interface ClusterView {
  readonly connected: boolean;
  readonly server?: string;
  readonly reason?: string;
  /** Name of the agent that delivers for all. Missing: there is none, or it is unknown. */
  readonly delivers?: string;
  readonly members: number;
  /** All agents with a record; those without `aliveMs` are gone. */
  readonly agents: readonly Omit<Member, "boot">[];
  /** False: no leader of the servers has answered for 15 s, so nothing can be handed over or delivered. */
  readonly hasQuorum: boolean;
  /** Undefined: unknown, or there is none yet. */
  readonly stream?: ClusterStream;
  /** Another agent uses this `agent.name`. */
  readonly sameName: boolean;
}

type ClusterStream = Pick<StreamState, "messages" | "bytes" | "maxBytes" | "oldestMs" | "replicas" | "replicasInPlace">;

/** Lifetime of lease entries in multiples of `leaseTtl`; agents time the leases with their own clocks. */
const entryLife = 10;
const lookEveryMs = 2_000;
/** Electing a leader takes 4 to 9 s. */
const leaderlessMs = 15_000;

/** `leases`: entries expire. `state`: entries stay. The caller owns `link`. */
export function clusterBuckets(
  link: NatsLink,
  { replicas, leaseTtl }: Pick<ClusterOptions, "replicas" | "leaseTtl">,
  integration: string,
): { readonly leases: KeyBucket; readonly state: KeyBucket } {
  return {
    leases: natsBucket(link, { name: `tagferry-leases-${integration}`, replicas, ttlMs: entryLife * leaseTtl }),
    state: natsBucket(link, { name: `tagferry-state-${integration}`, replicas }),
  };
}

interface ClusterParts {
  readonly options: ClusterOptions;
  /** `service.integration`. Agents of other integrations share nothing with this one. */
  readonly integration: string;
  /** `agent.name`. */
  readonly node: string;
  readonly report: () => MemberReport;
}

/** Connects and reconnects automatically. */
export class JoinedCluster implements AsyncDisposable {
  readonly stream: PointStream;
  readonly leases: KeyBucket;
  /** A bucket whose entries do not expire. */
  readonly state: KeyBucket;
  readonly members: Membership;
  /** Requests of commands to the agent that delivers. */
  readonly requests: RequestChannel;
  readonly #link: NatsLink;
  readonly #node: string;
  readonly #runtime: Runtime;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  #delivers: string | undefined;
  #stream: ClusterStream | undefined;
  #answeredAt: number;

  constructor({ options, integration, node, report }: ClusterParts, runtime: Runtime) {
    this.#runtime = { ...runtime, log: runtime.log.child({ part: "cluster" }) };
    this.#node = node;
    this.#answeredAt = runtime.clock.monotonic();
    this.#link = new NatsLink(options, node, runtime);
    this.stream = natsStream(this.#link, options, integration);
    const { leases, state } = clusterBuckets(this.#link, options, integration);
    this.leases = leases;
    this.state = state;
    this.requests = natsRequests(this.#link, integration, runtime.clock);
    const heartbeats = natsHeartbeats(this.#link, integration, runtime.clock);
    this.members = new Membership({ state: this.state, heartbeats, node, report }, this.#runtime);
    this.#running = Promise.all([this.members.run(this.#stop.signal), this.#watch()]).catch((error: unknown) =>
      this.#runtime.log.error({ err: error }, "the members of the cluster are not watched any more"),
    );
  }

  get view(): ClusterView {
    const { isConnected, server, reason } = this.#link.state;
    return {
      connected: isConnected,
      ...(isConnected && server && { server: server.name }),
      ...(!isConnected && reason !== undefined && { reason }),
      ...(isConnected && this.#delivers !== undefined && { delivers: this.#delivers }),
      members: this.members.candidates.length,
      agents: this.members.members.map(({ boot: _boot, ...member }) => member),
      hasQuorum: isConnected && this.#runtime.clock.monotonic() - this.#answeredAt < leaderlessMs,
      ...(isConnected && this.#stream && { stream: this.#stream }),
      sameName: this.members.hasNamesake,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("the agent leaves the cluster"));
    await this.#link[Symbol.asyncDispose]();
    await this.#running;
  }

  async #watch(): Promise<void> {
    const { clock, log } = this.#runtime;
    const { signal } = this.#stop;
    let reason = "";
    let silentSince = clock.monotonic();
    while (!signal.aborted) {
      try {
        const entry = await this.leases.get(deliveryLease);
        const { node } = entry ? holderOf(entry) : {};
        if (node !== undefined && node !== this.#delivers)
          log.info({ node }, `${node === this.#node ? "this" : "another"} agent delivers for the cluster`);
        this.#delivers = node;
        this.#stream = streamOf(await this.stream.state());
        this.#answeredAt = clock.monotonic();
        silentSince = this.#answeredAt;
        reason = "";
      } catch (error) {
        if (reasonOf(error) !== reason) log.warn({ reason: reasonOf(error) }, "it is not known which agent delivers");
        reason = reasonOf(error);
        this.#delivers = undefined;
        this.#stream = undefined;
        if (!this.#link.state.isConnected) silentSince = clock.monotonic();
        // The server may be partitioned from the others, which may have a leader.
        if (clock.monotonic() - silentSince >= leaderlessMs) {
          log.warn({ server: this.#link.state.server?.name }, "the server reaches no leader; trying the next server");
          this.#link.changeServer();
          silentSince = clock.monotonic();
        }
      }
      await clock.sleep(lookEveryMs, signal).catch(() => {});
    }
  }
}

function streamOf(state: StreamState | undefined): ClusterStream | undefined {
  if (!state) return undefined;
  const { messages, bytes, maxBytes, oldestMs, replicas, replicasInPlace } = state;
  return { messages, bytes, maxBytes, oldestMs, replicas, replicasInPlace };
}
