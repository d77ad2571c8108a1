// The cluster as a command sees it: it reads and writes the shared buckets itself, so no local agent need run.
import { clusterBuckets, clusterHeartbeats } from "../../cluster/cluster.ts";
import type { KeyBucket } from "../../cluster/jetstream.ts";
import { tokenName } from "../../cluster/key-token.ts";
import { deliveryLease, holderOf } from "../../cluster/lease.ts";
import { heardNode, readMembers, readOrders, silentMs } from "../../cluster/membership.ts";
import { NatsLink } from "../../cluster/nats-connection.ts";
import { sourceLease } from "../../cluster/source-leases.ts";
import { loadConfig } from "../../config/load.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { connectedWithin } from "../shared/service-caller.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, exitStatus } from "../terminal/exit-status.ts";

type Members = Awaited<ReturnType<typeof readMembers>>;

export interface ClusterState {
  readonly members: readonly (Members[number] & {
    /** It sends heartbeats. */
    readonly alive: boolean;
    readonly drained: boolean;
  })[];
  /** Names of the agents that hold leases. */
  readonly delivers?: string;
  readonly sources: readonly { readonly name: string; readonly reader?: string; readonly movedTo?: string }[];
}

export interface ClusterAccess extends AsyncDisposable {
  readonly state: KeyBucket;
  readonly server: string;
  readonly runtime: Runtime;
  /** `agent.name` of the configuration. */
  readonly node: string;
  /** Observes heartbeats, 2 s while all members are alive, else 6 s. Rejects with server errors. */
  observe(): Promise<ClusterState>;
  /** Who holds leases, without observing. */
  holders(): Promise<Pick<ClusterState, "delivers" | "sources">>;
}

const lookMs = 250;

/** Rejects with `CLUSTER_*`, configuration errors, or if there is no section `cluster`. */
export async function openCluster({ config: file }: ConfigOptions, io: Console): Promise<ClusterAccess> {
  const { agent, service, cluster } = await loadConfig(file, io.environment);
  if (!cluster)
    throw new CommandFailed(
      `${file} has no section cluster\n  give the configuration of an agent of the cluster with -c: it names the servers`,
      exitStatus.config,
    );
  const runtime = commandRuntime();
  await using opened = new AsyncDisposableStack();
  const link = opened.use(new NatsLink(cluster, `${agent.name} command`, runtime));
  await connectedWithin(link, cluster, io.signal);
  const { leases, state } = clusterBuckets(link, cluster, service.integration);

  async function holders() {
    const delivery = await leases.get(deliveryLease);
    const { node } = delivery ? holderOf(delivery) : {};
    const prefix = sourceLease();
    const held = await leases.list(prefix);
    const sources = held.map((entry) => {
      const reader = holderOf(entry).node;
      return { name: tokenName(entry.key.slice(prefix.length)), ...(reader !== undefined && { reader }) };
    });
    return { ...(node !== undefined && { delivers: node }), sources };
  }

  async function observe(): Promise<ClusterState> {
    const alive = new Set<string>();
    const { clock } = runtime;
    const heartbeats = clusterHeartbeats(link, service.integration, clock);
    const enough = new AbortController();
    const listening = heartbeats.listen(
      (data) => alive.add(heardNode(data)?.node ?? ""),
      AbortSignal.any([io.signal, enough.signal]),
    );
    try {
      const members = await readMembers(state);
      const since = clock.monotonic();
      while (clock.monotonic() - since < silentMs && !members.every(({ node }) => alive.has(node)))
        await clock.sleep(lookMs, io.signal);
    } finally {
      enough.abort();
      await listening;
    }
    // An agent that has just joined was heard before it had a record.
    const members = await readMembers(state);
    const orders = await readOrders(state);
    const { delivers, sources } = await holders();
    const ordered = (kind: "drain", node: string) => orders.some((one) => one.kind === kind && one.node === node);
    const names = new Set([...members.flatMap(({ offers }) => offers), ...sources.map(({ name }) => name)]);
    return {
      members: members
        .map((record) => ({ ...record, alive: alive.has(record.node), drained: ordered("drain", record.node) }))
        .toSorted((a, b) => a.node.localeCompare(b.node)),
      ...(delivers !== undefined && { delivers }),
      sources: [...names].toSorted().map((name) => {
        const move = orders.find((one) => one.kind === "move" && one.source === name);
        return { name, ...sources.find((one) => one.name === name), ...(move && { movedTo: move.node }) };
      }),
    };
  }

  const owned = opened.move();
  return {
    state,
    server: link.state.server?.name ?? "",
    runtime,
    node: agent.name,
    observe,
    holders,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
