// Calls the service for commands, within the rate that they share with a running agent.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { openCredentials } from "../../upload/client/client-credentials.ts";
import { MethodCaller } from "../../upload/client/method-caller.ts";
import { TurnFolder } from "../../upload/client/pacer.ts";
import { RpcClient } from "../../upload/client/rpc-client.ts";
import { version } from "../terminal/version.ts";

/** Bounds the memory that a command needs for an answer. */
const maxAnswerBytes = 256 * 2 ** 20;

/** Does not connect yet. `turns`: the rate shared with an agent; undefined if no agent has run here. */
export async function openServiceClient({ service, agent, cluster }: Config, runtime: Runtime) {
  if (cluster)
    throw new AgentError(
      "CONFIG_INVALID",
      "the agents of a cluster share one rate of requests, in which commands have no turn yet",
      {
        hint: "while no agent of the cluster runs, use a configuration without the section cluster",
      },
    );
  await using opened = new AsyncDisposableStack();
  const stateDir = join(agent.dataDir, "upload");
  // Only the agent creates the folder. Created by another user, it would block the agent.
  const turns = existsSync(stateDir) ? opened.use(new TurnFolder(stateDir, runtime.log)) : undefined;
  const credentials = opened.use(await openCredentials(service, join(stateDir, "token.json"), runtime));
  const name = `tagferry/${version()} (${agent.name})`;
  const client = opened.use(await RpcClient.open({ options: service, credentials, agent: name }, runtime));
  const owned = opened.move();
  return { client, turns, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Calls methods by name. Does not connect yet. */
export async function openServiceCaller(config: Config, runtime: Runtime) {
  const { client, turns, ...owned } = await openServiceClient(config, runtime);
  const caller = new MethodCaller({ options: config.service, client, maxAnswerBytes, turns }, runtime);
  return { caller, ...owned };
}
