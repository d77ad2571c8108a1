// The agent's own state as signals under `<agent.name>/tagferry/…`. They are mapped, stored and delivered like any tag.
import type { Config } from "../config/format/config.ts";
import type { BufferStats, PointBuffer } from "../core/buffer.ts";
import { isAgentError } from "../core/errors.ts";
import { epochMicros } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { SignalCatalog } from "../core/signal.ts";
import type { Captures, Reading, TagId } from "../core/source.ts";
import { repeat } from "../lib/flow/repeat.ts";
import type { InputOwners } from "../mapping/input-owners.ts";
import { type ConfiguredInputs, configuredInputs } from "../mapping/input-template.ts";
import { type TagRule, tagOptions } from "../mapping/options.ts";
import { openMapping } from "../mapping/source-mapping.ts";
import type { Status, UploadState, UploadStatus } from "./status/status.ts";

/** One measurement. */
export interface OwnValues {
  readonly sources: readonly { readonly name: string; readonly online: boolean; readonly readingsPerSecond: number }[];
  readonly upload: Pick<UploadStatus, "state" | "lagMs" | "backlogPoints">;
  readonly buffer: Pick<BufferStats, "refusedPoints" | "bytes" | "losses">;
  /** `cpuPercent`: of one core, since the previous measurement. */
  readonly process: { readonly memoryBytes: number; readonly cpuPercent: number };
  /** Undefined: no cluster is configured. */
  readonly cluster?: Status["cluster"];
}

/** Undefined: no value at present. By source where the Input ID has its name. */
type Value = number | undefined | readonly (readonly [source: string, value: number])[];
const seconds = (ms: number) => Math.round(ms) / 1_000;

const deliveryStates = [
  "delivering",
  "retrying",
  "held",
  "stopped",
  "standby",
] as const satisfies readonly UploadState[];

const clusterStates = ["unreachable", "no quorum", "connected"];

/**
 * Input ID, metadata and values of each signal. Dead bands keep an idle agent from sending noise. The signals of a
 * cluster come last: without a cluster they have no values, and `ownRules` has no rules for them.
 */
const signals: readonly { id: string; signal: object; deadband?: number; of: (values: OwnValues) => Value }[] = [
  {
    id: "source/{source}/online",
    signal: { name: "{source} online", type: "enum", enumValues: { 0: "offline", 1: "online" } },
    of: ({ sources }) => sources.map(({ name, online }) => [name, online ? 1 : 0]),
  },
  {
    id: "source/{source}/readings",
    signal: { name: "{source} readings", engUnit: "1/s", description: "Readings a second, over 10 s." },
    of: ({ sources }) => sources.map(({ name, readingsPerSecond }) => [name, readingsPerSecond]),
  },
  {
    id: "delivery/state",
    signal: { name: "Delivery", type: "enum", enumValues: Object.fromEntries(deliveryStates.entries()) },
    of: ({ upload }) => deliveryStates.indexOf(upload.state),
  },
  {
    id: "delivery/lag",
    signal: { name: "Delivery lag", engUnit: "s", description: "How late new points reach the service." },
    deadband: 1,
    of: ({ upload: { lagMs } }) => (lagMs === undefined ? undefined : seconds(lagMs)),
  },
  {
    id: "delivery/backlog",
    signal: { name: "Delivery backlog", engUnit: "points" },
    of: ({ upload }) => upload.backlogPoints,
  },
  {
    id: "delivery/refused",
    signal: { name: "Points refused by the service", engUnit: "points", description: "Since the buffer was created." },
    of: ({ buffer }) => buffer.refusedPoints,
  },
  {
    id: "buffer/bytes",
    signal: { name: "Buffer", engUnit: "B" },
    deadband: 65_536,
    of: ({ buffer }) => buffer.bytes,
  },
  {
    id: "buffer/dropped",
    signal: { name: "Points lost from the buffer", engUnit: "points", description: "Since the buffer was created." },
    of: ({ buffer }) => buffer.losses.reduce((sum, { points }) => sum + points, 0),
  },
  {
    id: "process/memory",
    signal: { name: "Agent memory", engUnit: "B" },
    deadband: 4e6,
    of: ({ process }) => process.memoryBytes,
  },
  {
    id: "process/cpu",
    signal: { name: "Agent CPU", engUnit: "%", description: "Of one core." },
    deadband: 1,
    of: ({ process }) => Math.round(process.cpuPercent * 10) / 10,
  },
  {
    id: "cluster/state",
    signal: { name: "Cluster", type: "enum", enumValues: Object.fromEntries(clusterStates.entries()) },
    of: ({ cluster }) => cluster && (cluster.connected ? (cluster.hasQuorum ? 2 : 1) : 0),
  },
  {
    id: "cluster/members",
    signal: { name: "Cluster members", engUnit: "agents", description: "Agents that are alive." },
    of: ({ cluster }) => (cluster?.connected ? cluster.members : undefined),
  },
  {
    id: "cluster/lag",
    signal: { name: "Forward lag", engUnit: "s", description: "Points of this time are not in the stream yet." },
    deadband: 1,
    of: ({ cluster }) => cluster && seconds(cluster.forwardLagMs),
  },
  {
    id: "cluster/stream",
    signal: { name: "Stream", engUnit: "B", description: "What the agents of the cluster have not delivered." },
    deadband: 65_536,
    of: ({ cluster }) => cluster?.stream?.bytes,
  },
  {
    id: "cluster/replicas",
    signal: { name: "Replicas in place", description: "Servers that store the stream and are up to date." },
    of: ({ cluster }) => cluster?.stream?.replicasInPlace,
  },
];

/** Unchanged values are stored again after this long. */
const heartbeat = "5m";

interface OwnConfig {
  readonly agent: Pick<Config["agent"], "name" | "ownSignals">;
  readonly cluster?: object | undefined;
}

/** The rules of the agent's own tags, in the order of `signals`. Those of the cluster only if one is configured. */
export function ownRules({ agent: { name, ownSignals }, cluster }: OwnConfig): readonly TagRule[] {
  if (ownSignals === "off") return [];
  return signals
    .filter(({ id }) => cluster !== undefined || !id.startsWith("cluster/"))
    .map(({ id, signal, deadband = 0 }) =>
      tagOptions.parse({
        input: `${name}/tagferry/${id}`,
        every: `${ownSignals.every}ms`,
        report: { heartbeat, deadband },
        signal: { ...signal, sourceType: "measurement", labels: { agent: [name] } },
      }),
    );
}

/** The rules of the agent's own Input IDs, which are known before the first measurement. */
export function ownInputRules(config: Pick<Config, "agent" | "sources" | "cluster">): readonly TagRule[] {
  return ownRules(config).flatMap((rule) =>
    rule.input.includes("{source}") ? config.sources.map((source) => ofSource(rule, source.name)) : [rule],
  );
}

/** All Input IDs that a configuration can create, including the agent's own. */
export function inputsOf(config: Config): ConfiguredInputs {
  // The template covers sources that were removed.
  const own = [...ownRules(config), ...ownInputRules(config)];
  return configuredInputs([...config.sources.flatMap(({ rules }) => rules), ...own]);
}

function ofSource(rule: TagRule, source: string): TagRule {
  const filled = (text: string) => text.replaceAll("{source}", source);
  const { name } = rule.signal;
  return {
    ...rule,
    input: filled(rule.input),
    signal: { ...rule.signal, ...(name !== undefined && { name: filled(name) }) },
  };
}

interface OwnSignalsParts {
  readonly rules: readonly TagRule[];
  /** In milliseconds. */
  readonly every: number;
  readonly measure: () => OwnValues;
  /** Whether the machine's clock is trusted. Values are only stored while it is. */
  readonly timed: () => boolean;
  readonly buffer: PointBuffer;
  readonly catalog: SignalCatalog;
  readonly owners: InputOwners;
}

/** Measures until it is disposed. If the disk rejects writes, only these values are lost. */
export function startOwnSignals(parts: OwnSignalsParts, runtime: Runtime): AsyncDisposable {
  const { rules, every, measure, timed, buffer, catalog, owners } = parts;
  const mapping = openMapping({ source: ownSource, rules, catalog, owners }, runtime);
  const captures = new Map<string, Captures>();
  const captured = (source: string): Captures => {
    const known = captures.get(source) ?? { source };
    captures.set(source, known);
    return known;
  };
  async function sample(stop: AbortSignal): Promise<void> {
    const values = measure();
    // Whole seconds coincide with the times of many polled tags. Shared times add little to a request.
    const time = epochMicros(Math.floor(runtime.clock.now() / 1e6) * 1e6);
    const rest = { time, clock: "agent", quality: "good", historical: false } as const;
    const readings = signals.flatMap(({ id, of }, tag) =>
      pairs(of(values)).map(
        // A tag's identity is its position in `rules`.
        ([source, value]): Reading => ({ tag: tag as TagId, captures: captured(source), address: id, value, ...rest }),
      ),
    );
    const points = mapping.map({ readings, descriptions: [] });
    if (points.length > 0) await buffer.append(points, { awaited: false }, stop);
  }

  const failure = "the agent's own signals ended unexpectedly";
  const step = async (stop: AbortSignal) => {
    try {
      if (timed()) await sample(stop);
    } catch (error) {
      // The sources report that nothing can be stored. These values are not worth waiting for.
      if (!isAgentError(error, "BUFFER_UNAVAILABLE")) throw error;
    }
  };
  const measuring = repeat(step, { everyMs: every, first: "later", failure }, runtime);
  return {
    async [Symbol.asyncDispose]() {
      using _mapping = mapping;
      await measuring[Symbol.asyncDispose]();
    },
  };
}

function pairs(value: Value): Exclude<Value, number | undefined> {
  return typeof value === "number" ? [["", value]] : (value ?? []);
}

/** Stands for the agent itself in counters. Names of sources have no slash, so it cannot collide. */
const ownSource = "tagferry/own";
