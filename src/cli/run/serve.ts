// The agent, its page and its control interface: the part of `tagferry run` after the configuration and the log.
import { flushCompileCache } from "node:module";
import { join, resolve } from "node:path";
import PQueue from "p-queue";
import { type Agent, type AgentOptions, openWaitingAgent, type Reload } from "../../agent/agent.ts";
import type { ClosableLogger } from "../../agent/log/log.ts";
import { openControlToken } from "../../agent/process/control-token.ts";
import type { MetricsRegistry } from "../../agent/process/metrics.ts";
import { processSecurity, releaseMemory, withFlagsOfStart } from "../../agent/process/process.ts";
import { measureBuild, measureCluster, measureUpload } from "../../agent/status/gauges.ts";
import type { Config, OtlpOptions } from "../../config/format/config.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import type { ConfigIssue } from "../../config/nodes/issue.ts";
import { tagText } from "../../config/sources/tag-places.ts";
import { isAgentError, reasonOf } from "../../core/errors.ts";
import type { Logger, Runtime } from "../../core/runtime.ts";
import { knownCertificates } from "../../discover/device/protocols.ts";
import { openDiscover } from "../../discover/discover.ts";
import { whenAborted } from "../../lib/flow/abort.ts";
import { countRejects, RejectFiles } from "../../upload/rejects/reject-files.ts";
import { openWeb, type WebOptions } from "../../web/server.ts";
import type { Console } from "../terminal/console.ts";
import { count } from "../terminal/text.ts";
import { version } from "../terminal/version.ts";
import { type ServiceManager, serviceManager } from "./service-manager.ts";

export interface ServeParts {
  /** As named by the user; read again on reload. */
  readonly file: string;
  readonly config: Config;
  readonly log: ClosableLogger;
  readonly metrics: MetricsRegistry;
  readonly agent: Omit<AgentOptions, "version">;
  readonly keepCode?: (() => void) | undefined;
}

/** Resolves after a signal has stopped the agent. Rejects as `openAgent` and `openWeb` do. */
export async function serve(
  { file, config, log, metrics, agent: parts, keepCode }: ServeParts,
  runtime: Runtime,
  io: Console,
): Promise<void> {
  await using agent = await openWaitingAgent(config, { ...parts, version: version() }, runtime, io.signal);
  measureUpload(metrics, () => agent.upload());
  measureBuild(metrics, version(), () => agent.config());
  await using _otlp = config.otlp && (await startExport(config.otlp, { config, log, metrics }, runtime));
  if (config.cluster) measureCluster(metrics, config.agent.name, () => agent.cluster());
  // Its heartbeats prove only that the event loop runs, since a restart would not repair a disk.
  await using manager = serviceManager(io.environment.variables, runtime);
  let started = false;
  const ready = () => (started ? { ok: true } : { ok: false, reason: "the sources are not started yet" });
  await using page = await openPage({ file, config, log, metrics, agent, manager, ready }, runtime, io);
  await agent.start();
  started = true;
  io.onHangUp(() => void page.reload());
  log.info(
    { version: version(), sources: config.sources.length, dataDir: config.agent.dataDir, page: page.url },
    "ready",
  );
  // On a terminal, shows the address of the page and how to stop.
  if (io.interactive)
    io.complain(`\n  status page  ${page.url}\n  ^C stops the agent; what is not delivered stays on disk\n`);
  await manager.ready(`${count(config.sources.length, "source")}, page ${page.url}`);
  setTimeout(settleDown, 1_000, keepCode).unref();
  setTimeout(releaseMemory, firstRequestsMs).unref();
  await whenAborted(io.signal);
  log.info({}, "stopping");
}

interface PageParts extends Pick<ServeParts, "file" | "config" | "log" | "metrics"> {
  readonly agent: Agent;
  /** Default: as configured. */
  readonly listen?: WebOptions["listen"];
  readonly manager?: Pick<ServiceManager, "reloading" | "reloaded">;
  readonly ready: WebOptions["ready"];
  /** Whether the page may look at devices and add tags. Default: true. */
  readonly addsTags?: boolean;
}

/** The page of an agent and its control interface. Rejects as `openWeb` does. */
export async function openPage(
  { file, config, log, metrics, agent, listen = config.http.listen, manager, ready, addsTags = true }: PageParts,
  runtime: Runtime,
  io: Console,
): Promise<AsyncDisposable & { readonly url: string; readonly reload: () => Promise<Reloaded> }> {
  await using opening = new AsyncDisposableStack();
  const reload = reloading(file, agent, io, log, manager);
  const { environment } = io;
  const checksum = () => agent.config().checksum;
  const running = (type: string) => agent.connections(type);
  const rejects = new RejectFiles(join(config.agent.dataDir, "upload"));
  const discover = opening.use(openDiscover({ file, environment, reload, checksum, running }, runtime));
  const control = opening.use(await openControlToken(config.agent.dataDir, log));
  const web = opening.use(
    await openWeb(
      {
        listen,
        allowedHosts: config.http.allowedHosts,
        tls: config.http.tls,
        readToken: config.http.readToken,
        snapshot: () => agent.status(),
        part: (first, count) => agent.statusOf(first, count),
        sample: () => agent.sample(),
        gaps: (sinceMs, most) => agent.gaps(sinceMs, most),
        configFile: resolve(file),
        rejects: () => countRejects(rejects.latest(rejectBytes)),
        certificates: () => knownCertificates(config.agent.dataDir),
        retry: () => agent.rejectRetry(),
        tag: (source, tag, input) => {
          const detail = agent.tag(source, tag, input);
          const { place, template } = detail ?? {};
          return detail && { ...detail, ...(place && { readText: () => tagText(place, template) }) };
        },
        series: (input, spanMs) => agent.series(input, spanMs, io.signal),
        metrics: () => metrics.text(),
        health: () => agent.health(),
        ready,
        control: {
          tokens: [control.token, ...(config.http.token ? [config.http.token] : [])],
          tokenFile: control.file,
          reload,
          retryRejects: () =>
            agent.retryRejects().then(
              (progress) => ({ ok: true, ...progress }),
              (error: unknown) => ({ ok: false, reason: reasonOf(error) }),
            ),
          log: () => log.recentSince(0).lines,
          logSince: (after) => log.recentSince(after),
          config: () => agent.shownConfig(),
          plan: () => plan(file, agent, io),
          security: processSecurity,
          ...(addsTags && { discover }),
        },
      },
      runtime,
      io.signal,
    ),
  );
  const opened = opening.move();
  return { url: web.url, reload, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function startExport(
  options: OtlpOptions,
  { config, log, metrics }: Pick<ServeParts, "config" | "log" | "metrics">,
  runtime: Runtime,
): Promise<AsyncDisposable> {
  // Loaded only if it is configured.
  const { startOtlpExport } = await import("../../agent/otlp/exporter.ts");
  const identity = { agent: config.agent.name, version: version(), startMs: performance.timeOrigin };
  return await startOtlpExport({ options, metrics, identity, logSince: (after) => log.recentSince(after) }, runtime);
}

/** By then, the metadata of most inputs is saved, and its memory is released: 15 of 171 MB with 10,000 tags. */
const firstRequestsMs = 20_000;

/** Saves compiled code before V8 discards it, then releases the memory needed for reading the configuration. */
function settleDown(keepCode?: () => void): void {
  if (keepCode) withFlagsOfStart(keepCode);
  flushCompileCache();
  releaseMemory();
}

/** `ok: false`: the configuration is invalid or could not be applied; the running one stays in effect. */
type Reloaded =
  | ({ readonly ok: true; readonly warnings: readonly ConfigIssue[] } & Reload)
  | { readonly ok: false; readonly reason: string; readonly errors: readonly ConfigIssue[] };

/** Serialises reloads in the order of the calls. The result is logged; the promise never rejects. */
function reloading(
  file: string,
  agent: Agent,
  io: Console,
  log: Logger,
  manager?: Pick<ServiceManager, "reloading" | "reloaded">,
): () => Promise<Reloaded> {
  const turns = new PQueue({ concurrency: 1 });
  return () =>
    turns.add(async () => {
      await manager?.reloading();
      const result = await reload(file, agent, io, log);
      await manager?.reloaded();
      return result;
    });
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
    const reason = reasonOf(error);
    agent.reloadFailed(reason);
    if (!isAgentError(error, "CONFIG_INVALID")) {
      log.error({ err: error }, "the configuration could not be reloaded");
      return { ok: false, reason, errors: [] };
    }
    const errors = configIssues(error);
    for (const { file: at, line, column, path, message, hint } of errors)
      log.error({ at: `${at}:${line}:${column}`, path, hint }, message);
    log.error({ reason }, "invalid configuration; keeping the current one");
    return { ok: false, reason, errors };
  }
}

async function plan(file: string, agent: Agent, { environment }: Console) {
  try {
    const planned = agent.plan(await loadConfig(file, environment));
    return { ok: true, file: resolve(environment.cwd, file), ...planned };
  } catch (error) {
    return { ok: false, reason: reasonOf(error), errors: configIssues(error) };
  } finally {
    releaseMemory();
  }
}

/** The page reads only this much of the latest refused points (some thousand); the files may have 32 MiB. */
const rejectBytes = 512 * 1024;
