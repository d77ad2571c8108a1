// What the agent knows of itself, as signals of the service beside those of the plant: read, mapped, stored and delivered
// like any tag, under `<agent.name>/tagferry/…`.
import type { Config } from "../config/config.ts";
import type { PointBuffer } from "../core/buffer.ts";
import { isAgentError } from "../core/errors.ts";
import { epochMicros } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Captures, Reading, TagId } from "../core/source.ts";
import { repeat } from "../lib/repeat.ts";
import type { InputOwners } from "../mapping/input-owners.ts";
import { type ConfiguredInputs, configuredInputs } from "../mapping/input-template.ts";
import { type TagRule, tagOptions } from "../mapping/options.ts";
import { openMapping } from "../mapping/source-mapping.ts";
import type { Catalog } from "../upload/signals/catalog.ts";
import type { UploadState } from "./status/status.ts";

/** What is measured each time. Undefined: there is no value now. */
export interface OwnValues {
  readonly sources: readonly { readonly name: string; readonly online: boolean; readonly readingsPerSecond: number }[];
  readonly deliveryState: UploadState;
  readonly lagMs: number | undefined;
  readonly backlogPoints: number;
  readonly refusedPoints: number;
  readonly bufferBytes: number;
  readonly droppedPoints: number;
  readonly memoryBytes: number;
  /** Of one core, over the time since it was asked before. */
  readonly cpuPercent: number;
}

const deliveryStates = [
  "delivering",
  "retrying",
  "held",
  "stopped",
  "standby",
] as const satisfies readonly UploadState[];

/**
 * Each signal: its Input ID after the prefix, what the service shall know of it, and where its values come from. What is
 * never twice the same has a dead band: an agent that has nothing to do stores and sends nothing of itself.
 */
const signals = [
  {
    id: "source/{source}/online",
    signal: { name: "{source} online", type: "enum", enumValues: { 0: "offline", 1: "online" } },
    of: (values: OwnValues) => values.sources.map(({ name, online }) => [name, online ? 1 : 0] as const),
  },
  {
    id: "source/{source}/readings",
    signal: { name: "{source} readings", engUnit: "1/s", description: "Readings a second, over 10 s." },
    of: (values: OwnValues) => values.sources.map(({ name, readingsPerSecond }) => [name, readingsPerSecond] as const),
  },
  {
    id: "delivery/state",
    signal: { name: "Delivery", type: "enum", enumValues: Object.fromEntries(deliveryStates.entries()) },
    of: ({ deliveryState }: OwnValues) => [["", deliveryStates.indexOf(deliveryState)] as const],
  },
  {
    id: "delivery/lag",
    signal: { name: "Delivery lag", engUnit: "s", description: "Age of the newest point that the service has." },
    deadband: 1,
    of: ({ lagMs }: OwnValues) => (lagMs === undefined ? [] : [["", Math.round(lagMs) / 1_000] as const]),
  },
  {
    id: "delivery/backlog",
    signal: { name: "Delivery backlog", engUnit: "points" },
    of: ({ backlogPoints }: OwnValues) => [["", backlogPoints] as const],
  },
  {
    id: "delivery/refused",
    signal: { name: "Points refused by the service", engUnit: "points", description: "Since the buffer was created." },
    of: ({ refusedPoints }: OwnValues) => [["", refusedPoints] as const],
  },
  {
    id: "buffer/bytes",
    signal: { name: "Buffer", engUnit: "B" },
    deadband: 65_536,
    of: ({ bufferBytes }: OwnValues) => [["", bufferBytes] as const],
  },
  {
    id: "buffer/dropped",
    signal: { name: "Points lost from the buffer", engUnit: "points", description: "Since the buffer was created." },
    of: ({ droppedPoints }: OwnValues) => [["", droppedPoints] as const],
  },
  {
    id: "process/memory",
    signal: { name: "Agent memory", engUnit: "B" },
    deadband: 4e6,
    of: ({ memoryBytes }: OwnValues) => [["", memoryBytes] as const],
  },
  {
    id: "process/cpu",
    signal: { name: "Agent CPU", engUnit: "%", description: "Of one core." },
    deadband: 1,
    of: ({ cpuPercent }: OwnValues) => [["", Math.round(cpuPercent * 10) / 10] as const],
  },
];

/** What does not change is stored again after this long. */
const heartbeat = "5m";

export interface OwnSignalsParts {
  readonly agent: string;
  /** Milliseconds. */
  readonly every: number;
  readonly measure: () => OwnValues;
  /** Whether times of this machine can be believed now; while they cannot, nothing is stored. */
  readonly timed: () => boolean;
  readonly buffer: PointBuffer;
  readonly catalog: Catalog;
  readonly owners: InputOwners;
}

/** The tags that the agent itself feeds. `every` in milliseconds. */
export function ownRules(agent: string, every: number): readonly TagRule[] {
  return signals.map(({ id, signal, deadband = 0 }) =>
    tagOptions.parse({
      input: `${agent}/tagferry/${id}`,
      every: `${every}ms`,
      report: { heartbeat, deadband },
      signal: { ...signal, sourceType: "measurement", labels: { agent: [agent] } },
    }),
  );
}

/** A rule for each signal that a configuration makes the agent have of its own. */
export function ownTags({ agent: { name, ownSignals }, sources }: Pick<Config, "agent" | "sources">) {
  if (ownSignals === "off") return [];
  return ownRules(name, ownSignals.every).flatMap((rule, i) =>
    signals[i]?.id.startsWith("source/") ? sources.map(() => rule) : [rule],
  );
}

/** Every Input ID that a configuration may give rise to, the agent's own included. */
export function inputsOf({ agent: { name, ownSignals }, sources }: Config): ConfiguredInputs {
  const own = ownSignals === "off" ? [] : ownRules(name, ownSignals.every);
  // Those of each source are known before anything was measured.
  const named = own.flatMap((rule) => sources.map((source) => ofSource(rule, source.name)));
  return configuredInputs([...sources.flatMap(({ rules }) => rules), ...own, ...named]);
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

/** Runs from now on until it is disposed. A disk that stores nothing costs these values and nothing else. */
export function startOwnSignals(parts: OwnSignalsParts, runtime: Runtime): AsyncDisposable {
  const { agent, every, measure, timed, buffer, catalog, owners } = parts;
  const rules = ownRules(agent, every);
  const mapping = openMapping({ source: ownSource, rules, catalog, owners }, runtime);
  const captures = new Map<string, Captures>();
  const captured = (source: string): Captures => {
    const known = captures.get(source) ?? { source };
    captures.set(source, known);
    return known;
  };
  async function sample(stop: AbortSignal): Promise<void> {
    const values = measure();
    // Whole seconds, which many polled tags have as well: times that are shared cost the requests nothing.
    const time = epochMicros(Math.floor(runtime.clock.now() / 1e6) * 1e6);
    const readings = signals.flatMap(({ id, of }, tag) =>
      of(values).map(
        ([source, value]): Reading => ({
          // The position in `rules` is the identity of a tag.
          tag: tag as TagId,
          captures: captured(source),
          address: id,
          value,
          time,
          clock: "agent",
          quality: "good",
          historical: false,
        }),
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
      // The sources say that nothing can be stored; these are not worth waiting for.
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

/** Stands for the agent itself in counters; no source may be called so, since names of sources have no slash. */
const ownSource = "tagferry/own";
