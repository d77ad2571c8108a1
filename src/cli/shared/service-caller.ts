// Calls the service for commands, within the rate that they share with a running agent.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { NatsLink, natsRequests } from "../../cluster/connection/nats-connection.ts";
import type { ClusterOptions } from "../../cluster/connection/options.ts";
import { turnGate } from "../../cluster/leases/request-gates.ts";
import type { Config } from "../../config/format/config.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { openCredentials } from "../../upload/client/credentials.ts";
import { MethodCaller } from "../../upload/client/method-caller.ts";
import { TurnFolder } from "../../upload/client/pacer.ts";
import { openRpcClient } from "../../upload/client/rpc-client.ts";
import type { Method } from "../../wire/method.ts";
import { version } from "../terminal/version.ts";

/** Bounds the memory that a command needs for an answer. */
const maxAnswerBytes = 256 * 2 ** 20;

/** Does not connect yet. `turns`: the rate shared with an agent; undefined if no agent has run here. */
export async function openServiceClient({ service, agent, cluster }: Config, runtime: Runtime) {
  await using opened = new AsyncDisposableStack();
  const stateDir = join(agent.dataDir, "upload");
  // Only the agent creates the folder. Created by another user, it would block the agent. In a cluster, the agent that
  // gives a turn takes the one of its own machine for the command.
  const turns = !cluster && existsSync(stateDir) ? opened.use(new TurnFolder(stateDir, runtime.log)) : undefined;
  const credentials = opened.use(await openCredentials(service, join(stateDir, "token.json"), runtime));
  const name = `tagferry/${version()} (${agent.name})`;
  const client = opened.use(await openRpcClient({ options: service, credentials, agent: name }, runtime));
  const owned = opened.move();
  return { client, turns, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Calls methods by name. Connects to the cluster, if one is configured, but not to the service yet. */
export async function openServiceCaller(config: Config, runtime: Runtime) {
  await using opened = new AsyncDisposableStack();
  const { client, turns } = opened.use(await openServiceClient(config, runtime));
  const { service: options, cluster } = config;
  const gateOf = cluster && opened.use(await openTurns(cluster, config, runtime)).gateOf;
  const caller = new MethodCaller({ options, client, maxAnswerBytes, turns, gateOf }, runtime);
  const owned = opened.move();
  return { caller, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Turns in the rate that the agents of a cluster share. Rejects with `CLUSTER_UNREACHABLE` without a connection. */
async function openTurns(options: ClusterOptions, { service, agent }: Config, runtime: Runtime) {
  await using opened = new AsyncDisposableStack();
  const link = opened.use(new NatsLink(options, `${agent.name} command`, runtime));
  await connectedWithin(link, options);
  const channel = natsRequests(link, service.integration, runtime.clock);
  const owned = opened.move();
  return {
    gateOf: (method: Method) => turnGate(method, channel, runtime.clock),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const connectWithinMs = 5_000;

/** Rejects with `CLUSTER_UNREACHABLE` if no server of the cluster can be reached within 5 s. */
export async function connectedWithin(
  link: NatsLink,
  { servers }: ClusterOptions,
  signal?: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.timeout(connectWithinMs);
  try {
    await link.connected(signal ? AbortSignal.any([signal, limit]) : limit);
  } catch (cause) {
    signal?.throwIfAborted();
    throw new AgentError("CLUSTER_UNREACHABLE", `${servers.join(", ")}: ${link.state.reason}`, { cause });
  }
}
