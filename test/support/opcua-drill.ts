// An OPC UA server, an agent, the local service and the gap record under random faults. Every value that the server
// held must be in the service, or in an interval of the record that is not marked as filled. The record may report
// losses only for times around a fault.
import { setTimeout as sleep } from "node:timers/promises";
import type { Gap } from "../../src/agent/gaps/gap.ts";
import { gapFolder, readGapFolder } from "../../src/agent/gaps/gap-file.ts";
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { eventually } from "./eventually.ts";
import { lengthOf, lostSpans, reconcile, type Span } from "./gap-reconciliation.ts";
import { lineInputs, type OpcuaLine, opcuaLine } from "./opcua-line.ts";
import { patienceMs, RestartableAgent, soakConfiguration } from "./restartable-agent.ts";
import { seeded, testRuntime } from "./runtime.ts";
import { integration, password, testService } from "./service.ts";
import type { TemporaryFolder } from "./temporary-folder.ts";

export interface DrillResult {
  /** How often each fault happened. */
  readonly events: Readonly<Record<string, number>>;
  /** The number of values that the server held, and of those in the service. */
  readonly held: number;
  readonly stored: number;
  /** Values that are neither in the service nor in the record. */
  readonly unexplained: readonly string[];
  readonly gaps: readonly Gap[];
  /** A log of the faults and of the rows of the record, in seconds since the start, for analysing a failure. */
  readonly story: string;
  /** The duration of the drill, and of the times around faults, in seconds. */
  readonly seconds: number;
  readonly troubledSeconds: number;
  /**
   * Seconds, summed over the inputs, that the record reports as lost; and those of them outside the times around
   * faults.
   */
  readonly lostSeconds: number;
  readonly lostInPeaceSeconds: number;
}

interface World {
  readonly line: OpcuaLine;
  readonly agent: RestartableAgent;
  /** `pause` resolves a moment later, `silence` after a silence that may exceed the timeout. */
  readonly pause: () => Promise<void>;
  readonly silence: () => Promise<void>;
}

/** Ordered so that losses are followed by values from the history. */
const events: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async "server restarted behind a cut"({ line, pause }) {
    line.network.cut();
    // The agent never receives what the server samples in this time.
    await pause();
    await line.restart(pause);
  },
  async "sessions timed out"({ line, pause }) {
    line.network.cut();
    await pause();
    line.server.endSessions();
    await pause();
  },
  "agent reloaded": ({ agent }) => agent.reload(),
  "server restarted": ({ line, pause }) => line.restart(pause),
  async "agent killed"({ agent, pause }) {
    await agent.kill();
    await pause();
    await agent.start();
  },
  async "network cut"({ line, pause }) {
    line.network.cut();
    await pause();
  },
  async "agent stopped"({ agent, pause }) {
    await agent.stop();
    await pause();
    await agent.start();
  },
  async "network silent"({ line, pause, silence }) {
    line.network.muteDevice();
    await silence();
    line.network.cut();
    await pause();
  },
  async "messages not kept"({ line, pause, silence }) {
    line.network.muteDevice();
    await silence();
    line.network.cut();
    line.server.forget();
    await pause();
  },
};

/** Resolves after `count` faults, when all points that can be delivered are. */
export async function opcuaDrill(folder: TemporaryFolder, count: number, seed: number): Promise<DrillResult> {
  const random = seeded(seed);
  const dataDir = folder.file("data");
  const clock = systemClock();
  const from = clock.now();
  await using service = await testService();
  await using line = await opcuaLine(folder.file("server"));
  await using agent = new RestartableAgent({
    folder: folder.path,
    // A reload keeps the tags, because a tag that was not configured for a while would be missing all that time.
    // The queue holds one second of values: longer interruptions overflow it.
    configuration: (more) =>
      soakConfiguration(dataDir, service.url, line.source({ timeout: more ? "3s" : "2s", queue: 4 })),
    entry: `${import.meta.dirname}/hurried-agent.ts`,
  });
  await agent.start();
  const world: World = {
    line,
    agent,
    pause: () => sleep(1_000 * random()),
    silence: () => sleep(2_000 * random()),
  };
  /** Resolves with the time of the oldest value when all tags have newer values than `than`. */
  const calm = (than: number = clock.now()) =>
    eventually(async () => {
      await sleep(100);
      const { sources, tags } = await agent.status();
      const times = tags.flatMap(({ time, quality }) => (quality === "good" && time !== undefined ? [time] : []));
      const oldest = times.length === tags.length && Math.min(...times);
      return sources[0]?.state === "online" && oldest !== false && oldest > than && oldest;
    }, patienceMs);
  /** Resolves when every gap has a final state. */
  const settled = () =>
    eventually(async () => {
      await sleep(100);
      const open = (await agent.gaps()).filter(({ state }) => state === "open" || state === "filling");
      if (open.length > 0) throw new Error(`still being filled: ${JSON.stringify(open)}`);
      return true;
    }, patienceMs);
  /** The last recorded heartbeat of the source. An agent that is killed now knows no later time. */
  const alive = async () => (await readGapFolder(gapFolder(dataDir))).life?.sources.line ?? 0;
  await calm(0);
  line.begin();
  await calm();
  const started = clock.now();
  const happened: { readonly name: string; readonly at: number }[] = [];
  const troubled: Span[] = [];
  let deck = Object.keys(events);
  let since: number | undefined;
  while (happened.length < count) {
    if (deck.length === 0) deck = shuffled(Object.keys(events), random);
    const name = deck.shift() ?? "";
    if (since === undefined) {
      since = await calm(0);
      // What these values carry is acknowledged once the next ones arrive.
      await calm(since);
    }
    if (name === "agent killed") since = Math.min(since, await alive());
    const at = clock.now();
    await events[name]?.(world);
    line.network.restore();
    happened.push({ name, at });
    // The next fault often happens before the agent has recovered, or before the gaps have a final state.
    const patience = random();
    if (patience > 0.3) await calm();
    if (patience > 0.6) {
      await settled();
      troubled.push([since, clock.now()]);
      since = undefined;
      await sleep(2_000);
    }
    await sleep(2_000 * random());
  }
  await calm();
  if (since !== undefined) troubled.push([since, clock.now()]);
  await line.end();
  await settled();
  await eventually(async () => (await agent.status()).upload.backlogPoints === 0, patienceMs);
  const gaps = await agent.gaps();
  await agent.stop();
  const ended = clock.now();
  const span = { from: epochMicros(from - 60e6), before: epochMicros(ended + 60e6) };
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, span, testRuntime(), new AbortController().signal);
  const { missing, unexplained } = reconcile(line.held, stored, gaps);
  const lost = (but?: readonly Span[]) =>
    lineInputs.reduce((sum, input) => sum + lengthOf(lostSpans(gaps, input), but), 0) / 1e6;
  return {
    events: Object.fromEntries(
      Object.keys(events).map((name) => [name, happened.filter((one) => one.name === name).length]),
    ),
    held: line.held.length,
    stored: line.held.length - missing.length,
    unexplained,
    gaps,
    story: story(started, { happened, troubled, gaps }),
    seconds: (ended - started) / 1e6,
    troubledSeconds: lengthOf(troubled) / 1e6,
    lostSeconds: lost(),
    lostInPeaceSeconds: lost(troubled),
  };
}

interface Story {
  readonly happened: readonly { readonly name: string; readonly at: number }[];
  readonly troubled: readonly Span[];
  readonly gaps: readonly Gap[];
}

function story(started: number, { happened, troubled, gaps }: Story): string {
  const after = (time: number | undefined) => (time === undefined ? "" : ((time - started) / 1e6).toFixed(1));
  const between = (from: number, to: number | undefined) => `${after(from)} to ${after(to)}`;
  return [
    ...happened.map(({ name, at }) => `${after(at)}: ${name}`),
    `trouble: ${troubled.map((span) => between(...span)).join(", ")}`,
    ...gaps.map(
      ({ from, to, cause, state, reason, outcome = "" }) =>
        `${between(from, to)}: ${cause}, ${state}; ${reason}; ${outcome}`,
    ),
  ].join("\n");
}

function shuffled(names: readonly string[], random: () => number): string[] {
  return names
    .map((name) => ({ name, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ name }) => name);
}
