// Calls of the service for commands: with the credentials of the configuration, in its version, within the permitted rate,
// which they share with an agent that runs beside them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import type { Runtime } from "../../core/runtime.ts";
import { openCredentials } from "../../upload/client/client-credentials.ts";
import { MethodCaller } from "../../upload/client/method-caller.ts";
import { TurnFolder } from "../../upload/client/pacer.ts";
import { RpcClient } from "../../upload/client/rpc-client.ts";

/** As many points as a command can hold. */
const maxAnswerBytes = 256 * 2 ** 20;

export interface ServiceCaller extends AsyncDisposable {
  readonly caller: MethodCaller;
}

/** Connects to nothing yet. */
export async function openServiceCaller(
  { service, agent }: Config,
  version: string,
  runtime: Runtime,
): Promise<ServiceCaller> {
  await using opened = new AsyncDisposableStack();
  const stateDir = join(agent.dataDir, "upload");
  // Made by the agent alone: a folder of somebody else's would be in its way.
  const turns = existsSync(stateDir) ? opened.use(new TurnFolder(stateDir, runtime.log)) : undefined;
  const credentials = opened.use(await openCredentials(service, join(stateDir, "token.json"), runtime));
  const name = `tagferry/${version} (${agent.name})`;
  const client = opened.use(await RpcClient.open({ options: service, credentials, agent: name }, runtime));
  const owned = opened.move();
  return {
    caller: new MethodCaller({ options: service, client, maxAnswerBytes, turns }, runtime),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
