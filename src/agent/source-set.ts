// The sources of an agent, and changes to them while the others keep running. Each has its mapping, pipeline and monitor.

import { join } from "node:path";
import { ambiguitiesOf, type ConfiguredSource, type SourceChanges, sourceChanges } from "../config/format/config.ts";
import type { PointBuffer } from "../core/buffer.ts";
import type { EpochMicros } from "../core/point.ts";
import type { Clock, Runtime } from "../core/runtime.ts";
import type { SignalCatalog } from "../core/signal.ts";
import type { Source } from "../core/source.ts";
import { orAbort } from "../lib/flow/abort.ts";
import type { InputOwners } from "../mapping/input-owners.ts";
import { openMapping } from "../mapping/source-mapping.ts";
import { type HoldParts, holdForClock } from "./clock/clock-hold.ts";
import type { GapRecord } from "./gaps/gap-record.ts";
import { type SharedRead, sourceGaps } from "./gaps/source-gaps.ts";
import { runPipeline } from "./pipeline.ts";
import { monitoredSource, sourceMonitor } from "./status/source-monitor.ts";
import type { BoundAddresses } from "./upkeep/bound-addresses.ts";

export interface SourceParts {
  readonly agent: { readonly name: string; readonly dataDir: string };
  readonly configFile?: string | undefined;
  readonly buffer: PointBuffer;
  readonly catalog: SignalCatalog;
  readonly owners: InputOwners;
  readonly addresses: BoundAddresses;
  readonly gaps: GapRecord;
  readonly clockHold: HoldParts;
  /** Whether the agent stops for good; called when it stops. */
  readonly final?: (() => boolean) | undefined;
  /** The lease of a source that several agents of the cluster can read. */
  readonly leaseOf?: ((source: string) => SourceLease | undefined) | undefined;
}

/** Permission to read a source that several agents of the cluster can read. */
interface SourceLease extends SharedRead {
  /** See `DriverConfig.identity`. */
  readonly identity: string;
  /** See `DriverConfig.takeover`. */
  readonly takeover: number | undefined;
}

/** Time limit for stopping a source, in milliseconds. A slower source is abandoned. */
const stopWithinMs = 5_000;

type RunningSource = ReturnType<typeof startSource>;

/**
 * Starts the source at once; the monitor shows its state. Disposing the result stops the source, stores what it has read
 * and releases its Input IDs.
 */
function startSource(
  source: ConfiguredSource,
  { agent, configFile, buffer, catalog, owners, addresses, gaps: record, clockHold, final, leaseOf }: SourceParts,
  runtime: Runtime,
) {
  const { name, driver, options, tags, rules } = source;
  const lease = leaseOf?.(name);
  const own: Runtime = { ...runtime, log: runtime.log.child({ part: "source", source: name, driver: driver.type }) };
  const gaps = sourceGaps(record, { name, tags: tags.length, shared: lease }, runtime);
  const ambiguities = ambiguitiesOf(source);
  const mapping = openMapping(
    { source: name, rules, catalog, owners, addresses: addresses.of(source), ambiguities, watch: gaps },
    own,
  );
  gaps.names((tag, captures, address) => mapping.inputOf(tag, captures, address));
  const monitor = sourceMonitor(monitoredSource(source), runtime);
  const hold = holdForClock(name, clockHold, own);
  const stop = new AbortController();
  const attempted = Promise.withResolvers<void>();
  let retired = false;
  const driverConfig = {
    name,
    agent: agent.name,
    identity: lease?.identity,
    takeover: lease?.takeover,
    stateDir: join(agent.dataDir, "sources", name),
    sharedDir: agent.dataDir,
    configFile,
    // The next agent continues what the device keeps for the source.
    final: () => lease === undefined && (retired || final?.() === true),
    options,
    tags,
  };
  const running = runPipeline(
    {
      open: (given, signal) => {
        const clock = lease ? leasedClock(given.clock, lease.isHeld, stop) : given.clock;
        return driver.open(driverConfig, { ...given, clock }, signal).finally(attempted.resolve);
      },
      isHeld: lease?.isHeld,
      mapping,
      buffer,
      monitor,
      gaps,
      hold,
      unreachablePauseMs: driver.unreachablePauseMs,
    },
    own,
    stop.signal,
  ).catch((error: unknown) => own.log.error({ err: error }, "the pipeline ended unexpectedly"));
  return {
    configured: source,
    monitor,
    mapping,
    /** Resolves when the first attempt to connect has succeeded or failed. */
    attempted: attempted.promise,
    /** Up to when everything is recorded. */
    get accountedUpTo(): EpochMicros {
      return gaps.accountedUpTo;
    },
    /** Announces that the source will not reconnect. Disposal then also removes its state at the device. */
    retire(): void {
      retired = true;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      using _mapping = mapping;
      using _gaps = gaps;
      stop.abort(new Error("the agent stops"));
      try {
        await orAbort(running, AbortSignal.timeout(stopWithinMs));
      } catch {
        own.log.warn({ afterMs: stopWithinMs }, "the source did not stop in time and is left behind");
      }
    },
  };
}

/** Initially empty; `change` sets the sources. Owns every started source, even if starting another one fails. */
export type SourceSet = ReturnType<typeof sourceSet>;

export function sourceSet(parts: SourceParts, runtime: Runtime) {
  let running: readonly RunningSource[] = [];
  /** Serialises changes. There are none after disposal. */
  let busy: Promise<unknown> = Promise.resolve();
  let isOver = false;

  async function changeTo(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    if (isOver) return { started: [], restarted: [], stopped: [], unchanged: [] };
    const before = running;
    const changes = sourceChanges(
      before.map(({ configured }) => configured),
      sources,
    );
    const unchanged = new Set(changes.unchanged);
    running = before.filter(({ configured }) => unchanged.has(configured.name));
    const ended = before.filter((source) => !running.includes(source));
    for (const source of ended)
      if (!sources.some((next) => next.name === source.configured.name && sameIdentity(next, source.configured)))
        source.retire();
    // Removed sources release their Input IDs before new ones claim them.
    await Promise.all(ended.map((source) => source[Symbol.asyncDispose]()));
    const { life } = parts.gaps;
    for (const source of sources) {
      if (unchanged.has(source.name)) continue;
      const former = changes.started.includes(source.name) ? formerOf(source, ended) : undefined;
      const upTo = former && life.accountedUpTo(former.configured.name);
      // What a renamed source, or a tag that moves, misses meanwhile is a gap, too.
      if (upTo !== undefined) life.stopped(source.name, upTo);
      // Added one by one, so that started sources are disposed even if starting the next one throws.
      running = [...running, startSource(source, parts, runtime)];
    }
    const names = sources.map(({ name }) => name);
    const place = ({ configured }: RunningSource) => names.indexOf(configured.name);
    running = running.toSorted((a, b) => place(a) - place(b));
    return changes;
  }

  return {
    /** In the order of the configuration. */
    get running(): readonly RunningSource[] {
      return running;
    },
    /** The live connections of the sources of this type. */
    connections(type: string): readonly Source[] {
      return running.flatMap(({ configured, monitor }) =>
        configured.driver.type === type && monitor.connection ? [monitor.connection] : [],
      );
    },
    /** Starts new sources, restarts changed ones and stops removed ones, then resolves. Unchanged sources keep running. */
    change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
      const changing = busy.then(() => changeTo(sources));
      busy = changing.catch(() => {});
      return changing;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isOver = true;
      await busy;
      await Promise.all(running.map((source) => source[Symbol.asyncDispose]()));
    },
  };
}

/** The source that recorded an Input ID of `source` before, under another name. */
function formerOf({ rules }: ConfiguredSource, ended: readonly RunningSource[]): RunningSource | undefined {
  const inputs = new Set(rules.map(({ input }) => input));
  return ended.find(({ configured }) => configured.rules.some(({ input }) => inputs.has(input)));
}

/** Whether both use the same identity at the device, and so the state that the device keeps for it. */
function sameIdentity(a: ConfiguredSource, b: ConfiguredSource): boolean {
  return a.driver.type === b.driver.type && a.driver.identity?.(a.options) === b.driver.identity?.(b.options);
}

/**
 * The clock of a driver whose source other agents can read, too: it aborts `stop` at the first use after the lease is
 * lost, and `sleep` rejects then. A process that was suspended so ends the source before its driver sends the next
 * request, since its timers may run in any order after it resumes.
 */
export function leasedClock(clock: Clock, isHeld: () => boolean, stop: AbortController): Clock {
  const check = () => {
    if (!isHeld()) stop.abort(new Error("another agent of the cluster may read the source now"));
  };
  return {
    now() {
      check();
      return clock.now();
    },
    monotonic() {
      check();
      return clock.monotonic();
    },
    async sleep(ms, signal, gridMs) {
      await clock.sleep(ms, signal, gridMs);
      check();
      stop.signal.throwIfAborted();
    },
  };
}
