// Reads the sources that several agents of a cluster can read, each while this agent holds its lease.
import { join } from "node:path";
import type { JoinedCluster } from "../../cluster/cluster.ts";
import type { LeaseTerm } from "../../cluster/leases/lease.ts";
import type { MemberReport } from "../../cluster/members/membership.ts";
import { holdSource, openHandover, type SourceHandover } from "../../cluster/sources/source-leases.ts";
import { type ConfiguredSource, type SourceChanges, sourceChanges } from "../../config/format/config.ts";
import { reasonOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { Since } from "../../lib/time/clock.ts";

/** Changes of the sources that are read, as `SourceSet` makes them. */
interface Sources {
  change(sources: readonly ConfiguredSource[]): Promise<SourceChanges>;
  readonly running: readonly { readonly configured: ConfiguredSource; readonly accountedUpTo: EpochMicros }[];
}

export interface ClusterSourcesOptions {
  readonly cluster: Pick<JoinedCluster, "leases" | "state" | "members">;
  readonly node: string;
  readonly ttlMs: number;
  readonly dataDir: string;
  /** See `DriverConfig.identity`. */
  readonly identity: string;
  readonly sources: Sources;
  /** Resolves when what is in the local buffer is in the stream, or cannot be soon. Never rejects. */
  readonly handOver: () => Promise<void>;
  /** Called before this agent starts a source that another agent has read. */
  readonly onTakeover: () => void;
}

interface Held {
  readonly term: LeaseTerm;
  readonly state: SourceHandover;
}

export interface StandbySource {
  readonly source: ConfiguredSource;
  readonly since: EpochMicros;
  readonly reader: string | undefined;
}

/** State is written this often per `ttlMs`. */
const saves = 3;
/** Longest wait for the servers when a source is stopped, in milliseconds. */
const lastSaveMs = 2_000;

/** Disposing it stops the sources and releases their leases. */
export type ClusterSources = ReturnType<typeof clusterSources>;

export function clusterSources(options: ClusterSourcesOptions, machine: Runtime) {
  const { cluster, node, ttlMs, dataDir, identity, sources: local } = options;
  const { clock } = machine;
  const log = machine.log.child({ part: "cluster" });
  const runtime: Runtime = { ...machine, log };
  const held = new Map<string, Held>();
  const holding = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  const standbySince = new Map<string, Since>();
  let configured: readonly ConfiguredSource[] = [];

  /** Starts and stops sources according to the configuration and the leases that are held. */
  function apply(): Promise<SourceChanges> {
    return local.change(configured.filter((source) => !isShared(source) || held.has(source.name)));
  }

  function hold(source: string): void {
    const stopping = new AbortController();
    standbySince.set(source, new Since(clock));
    const lease = {
      leases: cluster.leases,
      node,
      ttlMs,
      view: cluster.members,
      start: (_: string, term: LeaseTerm) => start(source, term),
      stop: () => stop(source),
    };
    const ended = holdSource(source, lease, runtime, stopping.signal).catch((error: unknown) =>
      log.error({ source, err: error }, "the lease of the source is no longer maintained"),
    );
    holding.set(source, { stop: stopping, ended });
  }

  async function end(source: string): Promise<void> {
    const ending = holding.get(source);
    holding.delete(source);
    ending?.stop.abort(new Error("this agent does not read the source any more"));
    await ending?.ended;
  }

  async function start(source: string, term: LeaseTerm): Promise<void> {
    const folder = join(dataDir, "sources", source);
    const isHeld = () => term.isHeld;
    const state = await openHandover({ state: cluster.state, source, node, folder, isHeld });
    if (!term.isHeld) return;
    const { former } = state;
    // Otherwise the next reader would not know of one that dies before its first regular save: it would take itself for
    // the first one and record no gap, or take what this one has acknowledged for lost.
    await state.save(former?.upTo ?? clock.now());
    if (!term.isHeld) return;
    log.info({ source, ...(former && { before: former.node }) }, "this agent reads the source");
    if (former) options.onTakeover();
    held.set(source, { term, state });
    void keepSaved(source, state, term.signal);
    await apply();
  }

  /** Stops reading, hands over what was read, so that the next reader appends behind it, and writes up to when it is. */
  async function stop(source: string): Promise<void> {
    const lease = held.get(source);
    if (!lease) return;
    held.delete(source);
    standbySince.set(source, new Since(clock));
    const running = runningSource(source);
    await apply();
    log.info({ source }, "this agent does not read the source any more");
    if (!running || !lease.term.isHeld) return;
    await options.handOver();
    const saved = lease.state.save(running.accountedUpTo);
    await orAbort(saved, AbortSignal.timeout(lastSaveMs)).catch((error: unknown) => unsaved(source, error));
  }

  async function keepSaved(source: string, state: SourceHandover, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await clock.sleep(ttlMs / saves, over).catch(() => {});
      const running = runningSource(source);
      if (over.aborted || held.get(source)?.state !== state) return;
      if (running) await state.save(running.accountedUpTo).catch((error: unknown) => unsaved(source, error));
    }
  }

  function runningSource(source: string) {
    return local.running.find((each) => each.configured.name === source);
  }

  function unsaved(source: string, error: unknown): void {
    log.debug({ source, reason: reasonOf(error) }, "the state of the source is not in the cluster");
  }

  return {
    /** Undefined: only this agent reads the source. */
    leaseOf(source: string) {
      const lease = held.get(source);
      if (!lease) return undefined;
      const { former } = lease.state;
      const { term } = lease;
      return { identity, takeover: former && term.generation, isHeld: () => term.isHeld, former };
    },
    /** What the other agents need to know to place sources. */
    get report(): Pick<MemberReport, "offers" | "prefers" | "reads"> {
      const names = (some: readonly ConfiguredSource[]) => some.map(({ name }) => name);
      return {
        offers: names(configured.filter(isShared)),
        prefers: names(configured.filter(({ run }) => run === "preferHere")),
        reads: names(local.running.map((each) => each.configured)),
      };
    },
    /** The sources of the configuration that this agent could read and does not. */
    get standby(): readonly StandbySource[] {
      const others = cluster.members.members.filter((each) => each.aliveMs !== undefined && each.node !== node);
      return configured
        .filter((source) => isShared(source) && !held.has(source.name))
        .map((source) => ({
          source,
          since: standbySince.get(source.name)?.time ?? clock.now(),
          reader: others.find(({ reads }) => reads.includes(source.name))?.node,
        }));
    },
    /** Like `SourceSet.change`. Sources that other agents may read count as if they were read here. */
    async change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
      const changes = sourceChanges(configured, sources);
      configured = sources;
      const shared = sources.filter(isShared).map(({ name }) => name);
      await Promise.all([...holding.keys()].filter((name) => !shared.includes(name)).map(end));
      await apply();
      for (const source of shared) if (!holding.has(source)) hold(source);
      return changes;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([...holding.keys()].map(end));
    },
  };
}

function isShared({ run }: ConfiguredSource): boolean {
  return run !== "here";
}
