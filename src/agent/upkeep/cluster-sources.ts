// Reads the sources that several agents of a cluster can read, each while this agent holds its lease.
import { join } from "node:path";
import type { JoinedCluster } from "../../cluster/cluster.ts";
import type { LeaseTerm } from "../../cluster/leases/lease.ts";
import type { MemberReport } from "../../cluster/members/membership.ts";
import { SourceHandover } from "../../cluster/sources/source-handover.ts";
import { holdSource } from "../../cluster/sources/source-leases.ts";
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
export class ClusterSources implements AsyncDisposable {
  readonly #options: ClusterSourcesOptions;
  readonly #runtime: Runtime;
  readonly #held = new Map<string, Held>();
  readonly #holding = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  readonly #standbySince = new Map<string, Since>();
  #configured: readonly ConfiguredSource[] = [];

  constructor(options: ClusterSourcesOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = { ...runtime, log: runtime.log.child({ part: "cluster" }) };
  }

  /** Undefined: only this agent reads the source. */
  leaseOf(source: string) {
    const held = this.#held.get(source);
    if (!held) return undefined;
    const { identity } = this.#options;
    const { term, state } = held;
    return {
      identity,
      takeover: state.former && term.generation,
      isHeld: () => term.isHeld,
      former: state.former,
    };
  }

  /** What the other agents need to know to place sources. */
  get report(): Pick<MemberReport, "offers" | "prefers" | "reads"> {
    const names = (some: readonly ConfiguredSource[]) => some.map(({ name }) => name);
    return {
      offers: names(this.#configured.filter(isShared)),
      prefers: names(this.#configured.filter(({ run }) => run === "preferHere")),
      reads: names(this.#options.sources.running.map(({ configured }) => configured)),
    };
  }

  /** The sources of the configuration that this agent could read and does not. */
  get standby(): readonly StandbySource[] {
    const others = this.#options.cluster.members.members.filter(({ aliveMs }) => aliveMs !== undefined);
    return this.#configured
      .filter((source) => isShared(source) && !this.#held.has(source.name))
      .map((source) => ({
        source,
        since: this.#standbySince.get(source.name)?.time ?? this.#runtime.clock.now(),
        reader: others.find(({ node, reads }) => node !== this.#options.node && reads.includes(source.name))?.node,
      }));
  }

  /** Like `SourceSet.change`. Sources that other agents may read count as if they were read here. */
  async change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    const changes = sourceChanges(this.#configured, sources);
    this.#configured = sources;
    const shared = sources.filter(isShared).map(({ name }) => name);
    await Promise.all(
      [...this.#holding.keys()].filter((name) => !shared.includes(name)).map((name) => this.#end(name)),
    );
    await this.#apply();
    for (const source of shared) if (!this.#holding.has(source)) this.#hold(source);
    return changes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#holding.keys()].map((name) => this.#end(name)));
  }

  /** Starts and stops sources according to the configuration and the leases that are held. */
  #apply(): Promise<SourceChanges> {
    return this.#options.sources.change(
      this.#configured.filter((source) => !isShared(source) || this.#held.has(source.name)),
    );
  }

  #hold(source: string): void {
    const { cluster, node, ttlMs } = this.#options;
    const stop = new AbortController();
    this.#standbySince.set(source, new Since(this.#runtime.clock));
    const options = {
      leases: cluster.leases,
      node,
      ttlMs,
      view: cluster.members,
      start: (_: string, term: LeaseTerm) => this.#start(source, term),
      stop: () => this.#stop(source),
    };
    const ended = holdSource(source, options, this.#runtime, stop.signal).catch((error: unknown) =>
      this.#runtime.log.error({ source, err: error }, "the lease of the source is no longer maintained"),
    );
    this.#holding.set(source, { stop, ended });
  }

  async #end(source: string): Promise<void> {
    const holding = this.#holding.get(source);
    this.#holding.delete(source);
    holding?.stop.abort(new Error("this agent does not read the source any more"));
    await holding?.ended;
  }

  async #start(source: string, term: LeaseTerm): Promise<void> {
    const { cluster, node, dataDir } = this.#options;
    const folder = join(dataDir, "sources", source);
    const isHeld = () => term.isHeld;
    const state = await SourceHandover.open({ state: cluster.state, source, node, folder, isHeld });
    if (!term.isHeld) return;
    const { former } = state;
    // Otherwise the next reader would not know of one that dies before its first regular save: it would take itself for
    // the first one and record no gap, or take what this one has acknowledged for lost.
    await state.save(former?.upTo ?? this.#runtime.clock.now());
    if (!term.isHeld) return;
    this.#runtime.log.info({ source, ...(former && { before: former.node }) }, "this agent reads the source");
    if (former) this.#options.onTakeover();
    this.#held.set(source, { term, state });
    void this.#keepSaved(source, state, term.signal);
    await this.#apply();
  }

  /** Stops reading, hands over what was read, so that the next reader appends behind it, and writes up to when it is. */
  async #stop(source: string): Promise<void> {
    const held = this.#held.get(source);
    if (!held) return;
    this.#held.delete(source);
    this.#standbySince.set(source, new Since(this.#runtime.clock));
    const running = this.#running(source);
    await this.#apply();
    this.#runtime.log.info({ source }, "this agent does not read the source any more");
    if (!running || !held.term.isHeld) return;
    await this.#options.handOver();
    const saved = held.state.save(running.accountedUpTo);
    await orAbort(saved, AbortSignal.timeout(lastSaveMs)).catch((error: unknown) => this.#unsaved(source, error));
  }

  async #keepSaved(source: string, state: SourceHandover, over: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    while (!over.aborted) {
      await clock.sleep(this.#options.ttlMs / saves, over).catch(() => {});
      const running = this.#running(source);
      if (over.aborted || this.#held.get(source)?.state !== state) return;
      if (running) await state.save(running.accountedUpTo).catch((error: unknown) => this.#unsaved(source, error));
    }
  }

  #running(source: string) {
    return this.#options.sources.running.find(({ configured }) => configured.name === source);
  }

  #unsaved(source: string, error: unknown): void {
    this.#runtime.log.debug({ source, reason: reasonOf(error) }, "the state of the source is not in the cluster");
  }
}

function isShared({ run }: ConfiguredSource): boolean {
  return run !== "here";
}
