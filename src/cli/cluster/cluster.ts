// `tagferry cluster`: the members of a cluster, and the operator's orders to them.
import { giveOrder, removeMember, takeBackOrder } from "../../cluster/membership.ts";
import { visible } from "../../lib/text/visible.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed } from "../terminal/exit-status.ts";
import { columns, count, printResult, span } from "../terminal/text.ts";
import { type ClusterAccess, type ClusterState, openCluster } from "./cluster-view.ts";

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
  const left = takes.length > 0 && (await within(cluster, isLeft, io));
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
  const read = await within(cluster, isRead, io);
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

async function within({ runtime: { clock } }: ClusterAccess, isSo: () => Promise<boolean>, io: Console) {
  for (const since = clock.monotonic(); clock.monotonic() - since < followedWithinMs; ) {
    if (await isSo()) return true;
    await clock.sleep(lookMs, io.signal);
  }
  return false;
}
