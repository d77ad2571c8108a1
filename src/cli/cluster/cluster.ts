// `tagferry cluster`: the members of a cluster, and the operator's orders to them.

import { clusterBuckets } from "../../cluster/cluster.ts";
import { tokenName } from "../../cluster/connection/jetstream.ts";
import { NatsLink, natsHeartbeats } from "../../cluster/connection/nats-connection.ts";
import { deliveryLease, holderOf } from "../../cluster/leases/lease.ts";
import {
  giveOrder,
  readHeartbeat,
  readMembers,
  readOrders,
  removeMember,
  silentMs,
  takeBackOrder,
} from "../../cluster/members/membership.ts";
import { sourceLease } from "../../cluster/sources/source-leases.ts";
import { loadConfig } from "../../config/load.ts";
import { waitUntil } from "../../lib/flow/repeat.ts";
import { visible } from "../../lib/text/visible.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { connectedWithin } from "../shared/service-caller.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, printResult, span } from "../terminal/text.ts";

interface OrderOptions extends ConfigOptions {
  readonly undo?: true;
}

/** How long a command waits for the agents to follow an order, in milliseconds. */
const followedWithinMs = 30_000;
const lookMs = 500;

export async function clusterStatus(options: ConfigOptions, io: Console): Promise<void> {
  await using cluster = await openCluster(options, io);
  const seen = await cluster.observe();
  printResult(options, seen, () => report(cluster, seen), io);
}

function report({ server }: ClusterAccess, { members, delivers, sources }: ClusterState): readonly string[] {
  if (members.length === 0) return ["no agent has joined the cluster"];
  const state = ({ alive, drained }: ClusterState["members"][number]) =>
    [alive ? "alive" : "not seen", ...(drained ? ["drained"] : [])].join(", ");
  return [
    visible(
      `${count(members.length, "agent")} at ${server}, ${delivers === undefined ? "none delivers" : `${delivers} delivers`}`,
    ),
    ...columns(
      members.map((member) => [
        member.node,
        member.version,
        state(member),
        member.reads.length === 0 || !member.alive ? "reads nothing" : `reads ${member.reads.join(", ")}`,
        member.alive && (member.forwardLagMs ?? 0) > 1_000 ? `hands over ${span(member.forwardLagMs ?? 0)} late` : "",
      ]),
    ),
    ...(sources.length === 0 ? [] : ["sources that several agents can read"]),
    ...columns(
      sources.map(({ name, reader, movedTo }) => [
        name,
        reader === undefined ? "read by none" : `read by ${reader}`,
        movedTo === undefined ? "" : `moved to ${movedTo}`,
      ]),
    ),
  ];
}

/** Lets the other agents deliver and read shared sources in place of `node`, until it is undone. */
export async function drain(node: string, options: OrderOptions, io: Console): Promise<void> {
  await using cluster = await openCluster(options, io);
  if (options.undo) {
    const was = await takeBackOrder(cluster.state, { kind: "drain", node });
    const text = was ? `${node} is not drained any more` : `${node} was not drained`;
    return printResult(options, { node, drained: false, changed: was }, () => [visible(text)], io);
  }
  const { members } = await cluster.observe();
  memberOf(members, node);
  await giveOrder(cluster.state, { kind: "drain", node });
  const takes = members.filter((one) => one.alive && !one.drained && one.node !== node);
  const isLeft = async () => {
    const { delivers, sources } = await cluster.holders();
    return delivers !== node && sources.every(({ reader }) => reader !== node);
  };
  const left = takes.length > 0 && (await cluster.isFollowed(isLeft));
  const text =
    takes.length === 0
      ? `${node} is drained, but goes on: no other agent is alive and not drained`
      : left
        ? `${node} is drained: it does not deliver, and reads only sources with run: here`
        : `${node} has the order to drain and still delivers or reads; tagferry cluster status shows when it has stopped`;
  const hint = `undo: tagferry cluster drain ${node} --undo`;
  printResult(options, { node, drained: true, left }, () => [visible(text), visible(hint)], io);
}

/** Lets `node` read `source` while it runs, whatever `run` says, until it is undone. */
export async function move(
  source: string,
  node: string | undefined,
  options: OrderOptions,
  io: Console,
): Promise<void> {
  await using cluster = await openCluster(options, io);
  if (options.undo) {
    const was = await takeBackOrder(cluster.state, { kind: "move", source, node: "" });
    const text = was ? `${source} is read by the agent that run prefers` : `${source} was not moved`;
    return printResult(options, { source, moved: false, changed: was }, () => [visible(text)], io);
  }
  const { members, sources } = await cluster.observe();
  if (node === undefined)
    throw new CommandFailed(`to which agent? ${source} can be read by ${listed(ableOf(members, source))}`);
  const { alive, drained, offers } = memberOf(members, node);
  if (!offers.includes(source))
    throw new CommandFailed(
      sources.some(({ name }) => name === source)
        ? `${node} cannot read ${source}: ${listed(ableOf(members, source))} can\n  add the source to the configuration of ${node}, with run: anywhere, preferHere or { prefer: NODE }`
        : `no agent has a source ${source} that others can read\n  set run of the source to anywhere, preferHere or { prefer: NODE }; the cluster has ${listed(sources.map(({ name }) => name))}`,
    );
  if (!alive) throw new CommandFailed(`${node} is not alive\n  start its agent, or choose another one`);
  if (drained) throw new CommandFailed(`${node} is drained\n  first tagferry cluster drain ${node} --undo`);
  await giveOrder(cluster.state, { kind: "move", source, node });
  const isRead = async () =>
    (await cluster.holders()).sources.some(({ name, reader }) => name === source && reader === node);
  const read = await cluster.isFollowed(isRead);
  const text = read
    ? `${node} reads ${source} while it runs`
    : `${node} does not read ${source} yet; tagferry cluster status shows when it does`;
  const hint = `undo: tagferry cluster move ${source} --undo`;
  printResult(options, { source, node, moved: true, read }, () => [visible(text), visible(hint)], io);
}

/** Forgets a member that will not come back, and the orders about it. */
export async function remove(node: string, options: ConfigOptions, io: Console): Promise<void> {
  await using cluster = await openCluster(options, io);
  const { members, sources } = await cluster.observe();
  if (memberOf(members, node).alive)
    throw new CommandFailed(
      `${node} is alive\n  stop its agent first; to keep it as a reserve, tagferry cluster drain ${node}`,
    );
  await removeMember(cluster.state, node);
  await takeBackOrder(cluster.state, { kind: "drain", node });
  for (const { name, movedTo } of sources)
    if (movedTo === node) await takeBackOrder(cluster.state, { kind: "move", source: name, node });
  const text = `${node} is removed; the points that it passed to the cluster are delivered, the others stay in its data directory`;
  printResult(options, { node, removed: true }, () => [visible(text)], io);
}

function memberOf(members: ClusterState["members"], node: string): ClusterState["members"][number] {
  const found = members.find((one) => one.node === node);
  if (found) return found;
  throw new CommandFailed(`no agent of the cluster is named ${node}: it has ${listed(members.map((one) => one.node))}`);
}

function ableOf(members: ClusterState["members"], source: string): readonly string[] {
  return members.filter(({ offers }) => offers.includes(source)).map(({ node }) => node);
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}

// The cluster as a command sees it: it reads and writes the shared buckets itself, so no local agent need run.
type Members = Awaited<ReturnType<typeof readMembers>>;

interface ClusterState {
  readonly members: readonly (Members[number] & {
    /** It sends heartbeats. */
    readonly alive: boolean;
    readonly drained: boolean;
  })[];
  /** Names of the agents that hold leases. */
  readonly delivers?: string;
  readonly sources: readonly { readonly name: string; readonly reader?: string; readonly movedTo?: string }[];
}

type ClusterAccess = Awaited<ReturnType<typeof openCluster>>;

const heartbeatPollMs = 250;

/** Rejects with `CLUSTER_*`, configuration errors, or if there is no section `cluster`. */
async function openCluster({ config: file }: ConfigOptions, io: Console) {
  const { agent, service, cluster } = await loadConfig(file, io.environment);
  if (!cluster)
    throw new CommandFailed(
      `${file} has no section cluster\n  give the configuration of an agent of the cluster with -c: it names the servers`,
      exitStatus.config,
    );
  const runtime = commandRuntime();
  const { clock } = runtime;
  await using opened = new AsyncDisposableStack();
  const link = opened.use(new NatsLink(cluster, `${agent.name} command`, runtime));
  await connectedWithin(link, cluster, io.signal);
  const { leases, state } = clusterBuckets(link, cluster, service.integration);

  /** Who holds leases, without observing. */
  async function holders(): Promise<Pick<ClusterState, "delivers" | "sources">> {
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

  /** Observes heartbeats, 2 s while all members are alive, else 6 s. Rejects with server errors. */
  async function observe(): Promise<ClusterState> {
    const alive = new Set<string>();
    const heartbeats = natsHeartbeats(link, service.integration, clock);
    const enough = new AbortController();
    const listening = heartbeats.listen(
      (data) => alive.add(readHeartbeat(data)?.node ?? ""),
      AbortSignal.any([io.signal, enough.signal]),
    );
    try {
      const members = await readMembers(state);
      const isHeard = () => members.every(({ node }) => alive.has(node));
      await waitUntil(isHeard, { withinMs: silentMs, everyMs: heartbeatPollMs }, clock, io.signal);
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
    observe,
    holders,
    /** Whether the agents follow an order in time, that is, `holds` resolves with true. */
    isFollowed: (holds: () => Promise<boolean>) =>
      waitUntil(holds, { withinMs: followedWithinMs, everyMs: lookMs }, clock, io.signal),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
