// How a running agent takes up its changed configuration, asked by SIGHUP or by `tagferry reload`.
import type { Agent, Reload } from "../../agent/agent.ts";
import { releaseMemory } from "../../agent/process/process-memory.ts";
import type { ConfigIssue } from "../../config/issue.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import { isAgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
import type { Console } from "../terminal/console.ts";
import type { ServiceManager } from "./service-manager.ts";

/** What came of it. `ok: false`: the configuration is wrong or could not be taken up; the one before stays in effect. */
type Reloaded =
  | ({ readonly ok: true; readonly warnings: readonly ConfigIssue[] } & Reload)
  | { readonly ok: false; readonly reason: string; readonly errors: readonly ConfigIssue[] };

/** One reload at a time, in the order they were asked for. What the result never does is reject; it is logged as well. */
export function reloading(
  file: string,
  agent: Agent,
  io: Console,
  log: Logger,
  manager: Pick<ServiceManager, "reloading" | "reloaded">,
): () => Promise<Reloaded> {
  let before: Promise<unknown> = Promise.resolve();
  return () => {
    const reloaded = before.then(async () => {
      await manager.reloading();
      const result = await reload(file, agent, io, log);
      await manager.reloaded();
      return result;
    });
    before = reloaded;
    return reloaded;
  };
}

async function reload(file: string, agent: Agent, io: Console, log: Logger): Promise<Reloaded> {
  try {
    const config = await loadConfig(file, io.environment);
    const { warnings } = config;
    for (const { path, message } of warnings) log.warn({ path }, message);
    const { needRestart, ...changes } = await agent.reload(config);
    releaseMemory();
    log.info(changes, "configuration reloaded");
    if (needRestart.length > 0) log.warn({ sections: needRestart }, "changes that need a restart are not in effect");
    return { ok: true, ...changes, needRestart, warnings };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (!isAgentError(error, "CONFIG_INVALID")) {
      log.error({ err: error }, "the configuration could not be reloaded");
      return { ok: false, reason, errors: [] };
    }
    const errors = configIssues(error);
    for (const { file: at, line, column, path, message, hint } of errors)
      log.error({ at: `${at}:${line}:${column}`, path, hint }, message);
    log.error({ reason }, "the configuration is wrong, the one before stays in effect");
    return { ok: false, reason, errors };
  }
}
