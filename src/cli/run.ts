// `tagferry run`: the agent and its status page, until a signal ends them.
import { flushCompileCache } from "node:module";
import { type AgentOptions, openWaitingAgent } from "../agent/agent.ts";
import { openControlToken } from "../agent/control-token.ts";
import { openLog } from "../agent/log.ts";
import { metricsRegistry } from "../agent/metrics.ts";
import { measureProcess } from "../agent/process-metrics.ts";
import { processSecurity } from "../agent/process-security.ts";
import { systemRuntime } from "../agent/runtime.ts";
import { measureUpload } from "../agent/upload-metrics.ts";
import { loadConfig } from "../config/load.ts";
import { openWeb } from "../web/server.ts";
import { type Console, stopped } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { count } from "./figures.ts";
import { pageDetails } from "./page-details.ts";
import { reloading } from "./reload-config.ts";
import { serviceManager } from "./service-manager.ts";
import { surviveDefects } from "./survive-defects.ts";
import { version } from "./version.ts";

/**
 * Keeps the compiled code of the start for the next one, as long as it is there: V8 forgets what does not run, and an agent
 * that is killed would keep nothing. Then gives back what reading the configuration needed: 7 MB. That only where Node was
 * started with --expose-gc.
 */
function settleDown(): void {
  flushCompileCache();
  globalThis.gc?.();
}

export async function run(
  { config: file }: { readonly config: string },
  io: Console,
  parts: Omit<AgentOptions, "version"> = {},
): Promise<ExitStatus> {
  // Whatever is made from here on is for this user alone, what libraries make as well.
  process.umask(0o077);
  const config = await loadConfig(file, io.environment);
  const log = await openLog({
    level: config.log.level,
    descriptor: 2,
    pretty: io.interactive,
    fields: { agent: config.agent.name },
  });
  const metrics = metricsRegistry();
  measureProcess(metrics);
  const runtime = systemRuntime(log, metrics);
  using _guard = surviveDefects(log);
  // Until it is ready the file has just been read.
  io.onHangUp(() => {});
  try {
    for (const { path, message } of config.warnings) log.warn({ path }, message);
    await using agent = await openWaitingAgent(config, { ...parts, version: version() }, runtime, io.signal);
    measureUpload(
      metrics,
      () => agent.upload(),
      () => performance.now(),
    );
    // A loop that no longer turns sends no sign of life. A disk that fails is no reason: a new start would not mend it.
    await using manager = serviceManager(io.environment.variables, () => true, runtime);
    let started = false;
    const reload = reloading(file, agent, io, log, manager);
    await using control = await openControlToken(config.agent.dataDir, log);
    await using web = await openWeb(
      {
        listen: config.http.listen,
        allowedHosts: config.http.allowedHosts,
        snapshot: () => agent.status(),
        gaps: (sinceMs, most) => agent.gaps(sinceMs, most),
        ...pageDetails(file, config),
        metrics: () => metrics.text(),
        health: () => agent.health(),
        ready: () => (started ? { ok: true } : { ok: false, reason: "the sources are not started yet" }),
        control: {
          tokens: [control.token, ...(config.http.token ? [config.http.token] : [])],
          tokenFile: control.file,
          reload,
          log: () => log.recent(),
          security: processSecurity,
        },
      },
      runtime,
      io.signal,
    );
    await agent.start();
    started = true;
    io.onHangUp(() => void reload());
    log.info(
      { version: version(), sources: config.sources.length, dataDir: config.agent.dataDir, page: web.url },
      "ready",
    );
    await manager.ready(`${count(config.sources.length, "source")}, page ${web.url}`);
    setTimeout(settleDown, 1_000).unref();
    await stopped(io.signal);
    log.info({}, "stopping");
  } finally {
    log.flush();
  }
  return exitStatus.done;
}
