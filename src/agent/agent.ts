// Starts the parts of the agent in order and stops them in reverse order.
import { join } from "node:path";
import { openDiskBuffer } from "../buffer/disk/disk-buffer.ts";
import { type Config, changedSections, type ShownConfig, type SourceChanges } from "../config/format/config.ts";
import type { BufferStats } from "../core/buffer.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Sink } from "../core/sink.ts";
import { Since } from "../lib/time/clock.ts";
import { InputOwners } from "../mapping/input-owners.ts";
import { openCatalog } from "../upload/signals/catalog.ts";
import { bufferOf } from "./buffer-of.ts";
import { AgentClock, clockFile, resumeClock } from "./clock/agent-clock.ts";
import { machineEvidence, openClockWatch, type TimeEvidence } from "./clock/clock-watch.ts";
import { type ConfigPlan, planOf, takenUp } from "./config-plan.ts";
import { bufferGaps } from "./gaps/buffer-gaps.ts";
import type { GapList } from "./gaps/gap.ts";
import { gapFolder } from "./gaps/gap-file.ts";
import { openGapRecord } from "./gaps/gap-record.ts";
import { inputsOf, type OwnValues, ownRules, startOwnSignals } from "./own-signals.ts";
import { boundGarbage, processUsage } from "./process/process.ts";
import { type SourceSet, sourceSet } from "./source-set.ts";
import { backlogTrend } from "./status/backlog-trend.ts";
import { sampleOfAgent, snapshot, snapshotOf, type TagDetail, tagDetail, uploadStatus } from "./status/snapshot.ts";
import type { ConfigStatus, Status, StatusPart, StatusSample, UploadStatus } from "./status/status.ts";
import { openBoundAddresses } from "./upkeep/bound-addresses.ts";
import type { ClusterStatus } from "./upkeep/cluster-delivery.ts";
import { startDelivery, type UploaderCalls } from "./upkeep/delivery.ts";

export interface AgentOptions {
  readonly version: string;
  /** Opens the buffer. Default: the disk buffer; tests replace or wrap it. */
  readonly openBuffer?: typeof openDiskBuffer;
  /** Evidence about the machine's clock. Default: the operating system; tests replace it. */
  readonly timeEvidence?: TimeEvidence;
  /** Destination of the points. Default: the configured service; tests replace it. */
  readonly sink?: Sink;
  /** Called when the agent stops. True: it stops for good and leaves no state at the devices. Default: false. */
  readonly final?: () => boolean;
}

/**
 * The running agent. Disposing it stops the sources, stores what they have read, and gives the request in flight 5 s.
 * Undelivered points stay on disk.
 */
export interface Agent extends AsyncDisposable, UploaderCalls {
  status(): Status;
  /** The status with `count` tags from index `first` on; beyond the end, the last tags. */
  statusOf(first: number, count: number): StatusPart;
  /** The plotted values of the status. The cost does not depend on the number of tags. */
  sample(): StatusSample;
  /** The same as `status().upload`, without computing the rest of the status. */
  upload(): UploadStatus;
  /** Undefined: no cluster is configured. */
  cluster(): ClusterStatus | undefined;
  /** Gaps that overlap the last `sinceMs` milliseconds, newest first, at most `most`. */
  gaps(sinceMs: number, most: number): GapList;
  /** One tag with its latest readings, which are recorded from the first call on. Undefined: there is none. */
  tag(source: string, tag: number, input: string): TagDetail | undefined;
  /** See `SourceSet.connections`. */
  connections: SourceSet["connections"];
  /** Whether the agent itself makes progress. An unreachable service or device does not make it unhealthy. */
  health(): { readonly ok: boolean; readonly reason?: string };
  /** Starts new sources, restarts changed ones and stops removed ones. Unchanged sources keep running. */
  reload(config: Config): Promise<Reload>;
  /** What a reload of this configuration would change, and a restart for the sections. Changes nothing. */
  plan(config: Config): ConfigPlan;
  /** Records for the status that the file was invalid or could not be applied. */
  reloadFailed(reason: string): void;
  /** The same as `status().agent.config`, without computing the rest of the status. */
  config(): ConfigStatus;
  /** Values in effect: of the sections as at the start, of the sources as last loaded, as are the files. */
  shownConfig(): ShownConfig;
}

export interface Reload extends SourceChanges {
  /** Changed sections of the configuration that take effect only after a restart. */
  readonly needRestart: readonly string[];
}

/** An agent that has not started its sources and delivery yet. */
export interface WaitingAgent extends Agent {
  /** Resolves once sources and delivery are started, whether they can connect or not. Call it at most once. */
  start(): Promise<void>;
}

/**
 * Resolves once the buffer is open and the sources are started. Rejects with `DATA_DIR_IN_USE`, `DATA_DIR_UNWRITABLE`,
 * `BUFFER_NEWER`, `BUFFER_OLDER` or `signal.reason`.
 */
export async function openAgent(...given: Parameters<typeof openWaitingAgent>): Promise<Agent> {
  const agent = await openWaitingAgent(...given);
  try {
    await agent.start();
    return agent;
  } catch (error) {
    await agent[Symbol.asyncDispose]();
    throw error;
  }
}

const namesOf = (sources: Config["sources"]) => sources.map(({ name }) => name);

/** Milliseconds that delivery waits for the sources to connect: loading its libraries takes a fifth of the start. */
const sourcesFirstMs = 300;

/** Like `openAgent`, but sources and delivery wait for `start`, since loading their libraries takes longest. */
export async function openWaitingAgent(
  config: Config,
  options: AgentOptions,
  machine: Runtime,
  signal: AbortSignal,
): Promise<WaitingAgent> {
  const { dataDir, name, ownSignals } = config.agent;
  const clock = new AgentClock(machine.clock);
  const runtime: Runtime = { ...machine, clock };
  await using opened = new AsyncDisposableStack();
  const buffer = opened.use(await (options.openBuffer ?? openDiskBuffer)(bufferOf(config), runtime, signal));
  const catalog = opened.use(await openCatalog(join(dataDir, "signals.db"), runtime, signal));
  let inputs = inputsOf(config);
  // A reload may come before the start.
  let wanted = config.sources;
  const begun = Promise.withResolvers<void>();
  const cluster =
    config.cluster &&
    // Loaded only if a cluster is configured.
    (await import("./upkeep/cluster-delivery.ts")).startClusterDelivery(
      {
        options: config.cluster,
        agent: config.agent,
        version: options.version,
        buffer,
        service: config.service,
        catalog,
        configured: (input) => inputs.has(input),
      },
      runtime,
    );
  if (cluster) opened.use(cluster);
  const delivery = opened.use(
    startDelivery(
      {
        options: config.service,
        buffer,
        catalog,
        configured: (input) => (cluster ? cluster.configured(input) : inputs.has(input)),
        dataDir,
        agent: `tagferry/${options.version} (${name})`,
        sink: options.sink,
        after: begun.promise,
        lead: cluster?.lead,
      },
      runtime,
    ),
  );
  const gaps = opened.use(await openGapRecord(gapFolder(dataDir), namesOf(wanted), runtime));
  const losses = bufferGaps(gaps, runtime.clock);
  const trend = backlogTrend(runtime.clock);
  opened.use(
    gaps.eachSecond(() => {
      const stats = buffer.stats();
      losses.record(cluster?.loss ? { losses: [...stats.losses, cluster.loss] } : stats);
      trend.sample(stats);
    }),
  );
  const file = clockFile(dataDir, runtime.log);
  await resumeClock(clock, file, gaps.life.former);
  const clockWatch = opened.use(
    await openClockWatch(
      {
        policy: config.agent.unsyncedClock,
        evidence: options.timeEvidence ?? machineEvidence,
        lastRan: gaps.life.former?.time,
        clock,
        file,
      },
      runtime,
    ),
  );
  const parts = {
    agent: config.agent,
    configFile: config.file,
    buffer,
    catalog: cluster?.signals ?? catalog,
    owners: new InputOwners(),
    addresses: opened.use(await openBoundAddresses(join(dataDir, "addresses.json"), runtime)),
    gaps,
    clockHold: { watch: clockWatch, clock },
    final: options.final,
  };
  const sources: SourceSet = sourceSet({ ...parts, leaseOf: (source) => shared?.leaseOf(source) }, runtime);
  const shared = cluster?.readSources(sources);
  const stopSources = async () => {
    await shared?.[Symbol.asyncDispose]();
    await sources[Symbol.asyncDispose]();
  };
  // The request in flight and the sources shut down concurrently, not one after the other.
  opened.defer(() => Promise.all([delivery[Symbol.asyncDispose](), stopSources()]).then(() => {}));
  const began = new Since(runtime.clock);
  const started = runtime.clock.monotonic();
  const uploadOf = (stats: BufferStats) =>
    uploadStatus({ time: runtime.clock.now(), config, buffer: stats, delivery, progress: trend.progress }, began.time);
  if (ownSignals !== "off") {
    const usage = processUsage(runtime.clock);
    const measure = (): OwnValues => {
      const stats = buffer.stats();
      return {
        sources: sources.running.map(({ monitor }) => monitor.vitals()),
        upload: uploadOf(stats),
        buffer: stats,
        process: usage(),
        cluster: cluster?.status,
      };
    };
    const timed = () => !clockWatch.holding;
    const { every } = ownSignals;
    opened.use(startOwnSignals({ ...parts, rules: ownRules(config), every, measure, timed }, runtime));
  }
  const owned = opened.move();
  let current = config;
  const inEffect = (needRestart: readonly string[]): ConfigStatus => ({
    checksum: current.checksum ?? "",
    loadedAt: runtime.clock.now(),
    needRestart,
  });
  let configStatus = inEffect([]);
  const known = () => ({
    time: runtime.clock.now(),
    agent: {
      name,
      version: options.version,
      config: configStatus,
      startedAt: began.time,
      uptimeMs: Math.round(runtime.clock.monotonic() - started),
    },
    config: { ...config, warnings: current.warnings },
    sources: sources.running,
    standby: shared?.standby,
    buffer: buffer.stats(),
    delivery,
    progress: trend.progress,
    gaps: gaps.summary(),
    clockProblem: clockWatch.problem,
    cluster: cluster?.status,
  });
  return {
    async start() {
      await (shared ?? sources).change(wanted);
      boundGarbage();
      parts.addresses.keepSources(namesOf(wanted));
      const connected = Promise.all(sources.running.map(({ attempted }) => attempted));
      begun.resolve(Promise.race([connected, runtime.clock.sleep(sourcesFirstMs, signal)]).then(() => {}));
    },
    status: () => snapshot(known()),
    sample: () => sampleOfAgent(known()),
    statusOf: (first, count) => snapshotOf(known(), first, count),
    upload: () => uploadOf(buffer.stats()),
    cluster: () => cluster?.status,
    gaps: (sinceMs, most) => gaps.list(runtime.clock.now() - sinceMs * 1_000, most),
    tag(name, tag, input) {
      const source = sources.running.find(({ monitor }) => monitor.name === name);
      const configured = current.sources.find((each) => each.name === name);
      return source && tagDetail({ ...source, configured }, tag, input);
    },
    connections: (type) => sources.connections(type),
    ...delivery.calls,
    health() {
      const { degraded } = buffer.stats();
      return degraded === undefined ? { ok: true } : { ok: false, reason: `points cannot be stored: ${degraded}` };
    },
    async reload(next) {
      wanted = takenUp({ ...config, sources: wanted }, next);
      const changes = await (shared ?? sources).change(wanted);
      parts.addresses.keepSources(namesOf(next.sources));
      for (const source of changes.stopped) gaps.sourceRemoved(source);
      current = next;
      inputs = inputsOf(next);
      cluster?.signals.reconfigured();
      await config.service.auth.basic?.password.renew();
      configStatus = inEffect(changedSections(config, next));
      return { ...changes, needRestart: configStatus.needRestart };
    },
    plan: (next) => planOf({ ...config, sources: wanted, checksum: current.checksum ?? "" }, next),
    reloadFailed(reason) {
      configStatus = { ...configStatus, failedReload: { at: runtime.clock.now(), reason } };
    },
    config: () => configStatus,
    shownConfig: () => ({ ...current, values: config.values }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
