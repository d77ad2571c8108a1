// Three servers, three agents and one integration under concurrent faults for a given time. Returns what is wrong in
// the end.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { nodeFlags } from "../../src/cli/shared/node-flags.ts";
import { NatsLink } from "../../src/cluster/connection/nats-connection.ts";
import { clusterOptions } from "../../src/cluster/connection/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import { type ClusterDrillWorld, clusterDrillFaults, type DrillAgent } from "./cluster-drill-faults.ts";
import { type ClusterDrillPlant, clusterDrillPlant } from "./cluster-drill-plant.ts";
import { type DrillService, drillService } from "./cluster-drill-service.ts";
import { clusterDrillShared, type SharedReconciliation } from "./cluster-drill-shared.ts";
import { eventually } from "./eventually.ts";
import { deal, shuffled } from "./fault-deck.ts";
import { labelOf, reconcile } from "./gap-reconciliation.ts";
import { type NatsServers, openNatsServers } from "./nats-servers.ts";
import { patienceMs, RestartableAgent } from "./restartable-agent.ts";
import { seeded, testRuntime } from "./runtime.ts";
import { integration } from "./service.ts";
import { tcpProxy } from "./tcp-proxy.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface ClusterDrillOptions {
  /** The minimum duration. Every fault happens at least once. */
  readonly durationMs: number;
  readonly seed: number;
}

export interface ClusterDrillResult extends SharedReconciliation {
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** Messages that the brokers acknowledged, and values of Modbus replies. */
  readonly acknowledged: number;
  readonly polled: number;
  /** Acknowledged messages that are not in the service. */
  readonly missing: readonly string[];
  /**
   * Values of replies that are neither in the service nor in the gap record, and the number that the record explains.
   */
  readonly unexplained: readonly string[];
  readonly explained: number;
  /** Times whose stored value is not the last one published, and the number of times. */
  readonly notLast: readonly string[];
  readonly sameTimes: number;
  readonly requests: number;
  /** Periods of more than 10 s without an insert, in seconds. */
  readonly silences: readonly string[];
  /** Requests with points that the service already had. */
  readonly repeats: number;
  /** The shortest interval between two requests of a method in milliseconds. */
  readonly spacing: Readonly<Record<string, number>>;
  /** The longest time in which the service's process was busy and read no requests. */
  readonly stallMs: number;
  /** Milliseconds from the death of the delivering agent to the next insert. */
  readonly takeovers: readonly number[];
  /** Points that the agents report as lost. */
  readonly lost: number;
  readonly exits: readonly (number | null)[];
  /** Log lines of level 50 and above. */
  readonly errors: readonly string[];
}

const names = ["gw1", "gw2", "gw3"] as const;
const seconds = (ms: number) => Math.round(ms / 1_000);
const never = new AbortController().signal;
/** The clock of this agent is ahead by `aheadMs`. */
const ahead = 2;
const aheadMs = 3_600_000;
const wrongClock = `const now=Date.now,Real=Date;globalThis.Date=class extends Real{constructor(...a){if(a.length)super(...a);else super(now()+${aheadMs})}static now(){return now()+${aheadMs}}}`;
/** The folder for the agents' logs. */
const logFolder = process.env.TAGFERRY_DRILL_LOGS;
const streamName = `tagferry-points-${integration}`;

/** Resolves after the drill, when everything is delivered. Rejects when something does not recover. */
export async function clusterDrill(
  { durationMs, seed }: ClusterDrillOptions,
  log: (line: string) => void,
): Promise<ClusterDrillResult> {
  using folder = temporaryFolder();
  // The order of faults is determined by the seed; what happens within a fault also depends on timing.
  const order = seeded(seed);
  const random = seeded(seed + 1);
  const runtime = testRuntime({ seed });
  const { clock } = runtime;
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const pause = (least: number, most: number) => clock.sleep(least + random() * (most - least), never);
  using delay = monitorEventLoopDelay({ resolution: 10 });
  await using opened = new AsyncDisposableStack();
  const cluster = opened.use(await openNatsServers());
  const service = opened.use(await drillService());
  const options = clusterOptions.parse({ servers: [...cluster.urls] });
  const link = opened.use(new NatsLink(options, "drill", runtime));
  const plants = await Promise.all(
    names.map(async (name) => opened.use(await clusterDrillPlant(name, folder.file(name), service.url, seeded(seed)))),
  );
  const shared = opened.use(await clusterDrillShared(folder.file("line")));
  const agents: DrillAgent[] = [];
  opened.defer(() => keepLogs(agents));
  for (const [i, name] of names.entries()) {
    const network = await Promise.all(cluster.servers.map(async ({ port }) => opened.use(await tcpProxy(port))));
    const urls = network.map(({ port }) => `nats://127.0.0.1:${port}`);
    const process = opened.use(
      new RestartableAgent({
        folder: folder.file(name),
        configuration: () =>
          `${plants[i]!.configuration}${shared.configuration(i !== ahead)}cluster: { servers: ${JSON.stringify(urls)} }\n`
            // Otherwise Modbus values of this agent wait for up to 10 minutes once devices have outvoted its clock.
            .replace("ownSignals: off", i === ahead ? "ownSignals: off, unsyncedClock: write" : "ownSignals: off"),
        nodeOptions: [
          ...nodeFlags,
          ...(i === ahead ? [`--import=data:text/javascript,${encodeURIComponent(wrongClock)}`] : []),
        ],
      }),
    );
    agents.push({ name, process, network });
  }
  const world = worldOf({ agents, cluster, service, random, link, options, pause });
  await Promise.all(agents.map(({ process }) => process.start()));
  const calm = async () => {
    await cluster.healthy(patienceMs);
    await eventually(async () => {
      const all = await Promise.all(agents.map(({ process }) => process.status()));
      const isRead = ({ state }: { state: string }) => state === "online" || state === "standby";
      const reads = shared.areRead(all) && all.every(({ sources }) => sources.every(isRead));
      const forwards = all.every(({ cluster: own }) => own?.connected && own.forwardLagMs < 2_000);
      return (
        reads && forwards && all.some(({ upload }) => upload.state === "delivering" && upload.backlogPoints < 2_000)
      );
    }, patienceMs).catch(async (error: unknown) => {
      const all = await Promise.all(agents.map(({ process }) => process.status()));
      const shown = all.map(({ cluster: own, upload, buffer, sources }) => ({
        own,
        upload,
        buffer,
        sources: sources.map(({ name, state, error: wrong }) => ({ name, state, wrong })),
      }));
      throw new Error(`did not recover: ${JSON.stringify(shown)}`, { cause: error });
    });
  };
  await calm();
  for (const plant of plants) await plant.begin();
  await shared.begin();
  delay.enable();

  const happened: string[] = [];
  let deck = shuffled(clusterDrillFaults, order);
  while (elapsed() < durationMs || happened.length < clusterDrillFaults.length) {
    if (deck.length === 0) deck = shuffled(clusterDrillFaults, order);
    const dealt = deal(deck, 1 + Math.floor(order() * 3));
    deck = deck.filter((fault) => !dealt.includes(fault));
    const story = await Promise.all(
      dealt.map(async (fault) => {
        await pause(0, 1_500);
        const from = seconds(elapsed());
        await fault.run(world);
        return `${fault.name} ${from}–${seconds(elapsed())} s`;
      }),
    );
    happened.push(...dealt.map(({ name }) => name));
    await calm();
    log(`${story.join(", ")}; repaired at ${seconds(elapsed())} s, ${service.inserts.length} requests`);
    await pause(500, 2_000);
  }

  await shared.end();
  const acknowledged = (await Promise.all(plants.map((plant) => plant.end()))).flat();
  for (const [i, plant] of plants.entries()) await untilRead(plant, agents[i]!.process);
  const polled = plants.map((plant) => [...plant.polled]);
  await eventually(() => {
    const last = polled.flatMap((values) => values.slice(-1));
    const missing = last.filter(({ input, value }) => !service.has(input, value));
    if (missing.length > 0) throw new Error(`not stored: ${JSON.stringify(missing)}`);
    return true;
  }, patienceMs);
  delay.disable();
  const spacing = service.spacing();

  const last = plants.flatMap((plant) => [...plant.last]);
  const compared = async () => {
    const stored = storedOf(service);
    const gaps = await Promise.all(agents.map(({ process }) => process.gaps()));
    const reconciled = polled.map((values, i) => reconcile(values, stored, gaps[i]!));
    return {
      missing: reconcile(acknowledged, stored, []).missing.map(labelOf),
      unexplained: reconciled.flatMap(({ unexplained }) => unexplained),
      explained: reconciled.reduce((sum, { missing, unexplained }) => sum + missing.length - unexplained.length, 0),
      ...lastValues(last, service),
      ...shared.reconcile(stored, gaps.flat()),
    };
  };
  // The rest of the backlog may take minutes on a busy machine.
  const comparison = await eventually(async () => {
    // The comparison takes seconds of this process, whose proxies and service the agents need to deliver the rest.
    await pause(5_000, 5_000);
    const now = await compared();
    const { missing, unexplained, notLast, sharedUnexplained } = now;
    const counts = [missing, unexplained, notLast, sharedUnexplained].map(({ length }) => length);
    log(`compared at ${seconds(elapsed())} s: missing, unexplained, not last, shared: ${counts.join(", ")}`);
    return counts.every((count) => count === 0) && now;
  }, patienceMs).catch(() => compared());
  const statuses = await Promise.all(agents.map(({ process }) => process.status()));
  await Promise.all(agents.map(({ process }) => process.stop()));
  const starts = service.inserts.map((start) => seconds(start - startedAt));
  const silences = starts.flatMap((at, i) => (at - starts[i - 1]! > 10 ? [`${starts[i - 1]}–${at}`] : []));
  return {
    faults: Object.fromEntries(
      clusterDrillFaults.map(({ name }) => [name, happened.filter((one) => one === name).length]),
    ),
    acknowledged: acknowledged.length,
    polled: polled.flat().length,
    ...comparison,
    requests: service.inserts.length,
    silences,
    repeats: service.repeats,
    spacing,
    stallMs: Math.round(delay.max / 1e6),
    takeovers: world.takeovers,
    lost: statuses.flatMap(({ buffer }) => buffer.losses).reduce((sum, { points }) => sum + points, 0),
    exits: agents.flatMap(({ process }) => process.exits),
    errors: agents.flatMap(({ name, process }) =>
      process.errors
        .filter(({ msg }) => name !== names[ahead] || !String(msg).startsWith("the clock is not set"))
        .map((line) => `${name}: ${JSON.stringify(line)}`),
    ),
  };
}

/** Waits as long as the agent goes on reading: on a busy machine its broker may have queued much. */
async function untilRead(plant: ClusterDrillPlant, agent: RestartableAgent): Promise<void> {
  const count = async () => (await agent.status()).sources.find(({ name }) => name === "hall")?.readings;
  for (;;) {
    const before = await count();
    try {
      return void (await eventually(() => plant.isRead(agent), patienceMs));
    } catch (error) {
      if ((await count()) === before) throw error;
    }
  }
}

function keepLogs(agents: readonly DrillAgent[]): void {
  if (logFolder === undefined) return;
  mkdirSync(logFolder, { recursive: true });
  for (const { name, process } of agents)
    writeFileSync(join(logFolder, `${name}.ndjson`), process.log.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

interface WorldParts extends Pick<ClusterDrillWorld, "agents" | "service" | "random"> {
  readonly cluster: NatsServers;
  readonly link: NatsLink;
  readonly options: { readonly maxSize: number };
  readonly pause: (least: number, most: number) => Promise<void>;
}

function worldOf({ link, options, pause, ...parts }: WorldParts): ClusterDrillWorld {
  const { agents, cluster, random } = parts;
  // Retries while the servers elect a leader.
  const asked = <T>(call: Parameters<typeof link.use<T>>[1]) => eventually(() => link.use("drill", call), patienceMs);
  return {
    ...parts,
    takeovers: [],
    while: () => (random() < 0.5 ? pause(200, 3_000) : pause(7_000, 12_000)),
    delivering: () =>
      eventually(async () => {
        const entry = await link.use("drill", ({ manager }) =>
          manager.streams.getMessage(`KV_tagferry-leases-${integration}`, {
            last_by_subj: `$KV.tagferry-leases-${integration}.delivery`,
          }),
        );
        const node = entry && entry.data.length > 0 && (JSON.parse(entry.string()) as { node: string }).node;
        return agents.find(({ name }) => name === node);
      }, patienceMs),
    leader: async () => {
      const name = await asked(async ({ manager }) => (await manager.streams.info(streamName)).cluster?.leader);
      return cluster.servers.find((server) => server.name === name)!;
    },
    deleteStream: async (which) => {
      const name = which === "points" ? streamName : `KV_tagferry-leases-${integration}`;
      await asked(({ manager }) => manager.streams.delete(name));
    },
    limitStream: async (moreBytes) => {
      await asked(async ({ manager }) => {
        const { state, config } = await manager.streams.info(streamName);
        const isLimited = config.max_bytes < options.maxSize;
        if (isLimited === (moreBytes !== undefined)) return true;
        const maxBytes = moreBytes === undefined ? options.maxSize : state.bytes + moreBytes;
        await manager.streams.update(streamName, { max_bytes: maxBytes });
        return true;
      });
    },
  };
}

/** Values by input and time. */
function storedOf({ stored }: DrillService): Stored {
  const all = new Map<InputId, Map<number, ReturnType<typeof epochMicros>[]>>();
  for (const [key, value] of stored) {
    const [input, time] = key.split(" ") as [InputId, string]; // the key format of the scripted service
    const values = all.get(input) ?? new Map();
    all.set(input, values);
    const at = epochMicros(Date.parse(time) * 1_000);
    values.set(value, [...(values.get(value) ?? []), at]);
  }
  return all;
}

function lastValues(last: readonly (readonly [string, number])[], { stored }: DrillService) {
  const byTime = new Map<string, number>();
  for (const [key, value] of stored) {
    const [input, time] = key.split(" ") as [string, string];
    if (input.includes(".same.")) byTime.set(`${input} ${new Date(time).toISOString()}`, value);
  }
  const wrong = last.filter(([key, value]) => byTime.get(key) !== value);
  return {
    notLast: wrong.map(([key, value]) => `${key}: ${byTime.get(key)} instead of ${value}`),
    sameTimes: last.length,
  };
}
