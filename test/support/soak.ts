// The whole system for a given time, with concurrent faults in every part. Returns what was found in the end.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { eventually } from "./eventually.ts";
import { deal, shuffled } from "./fault-deck.ts";
import { type Footprint, patienceMs, RestartableAgent, soakConfiguration } from "./restartable-agent.ts";
import { seeded, testRuntime } from "./runtime.ts";
import { integration, password, testService } from "./service.ts";
import { type SoakFault, type SoakWorld, soakFaults } from "./soak-faults.ts";
import { type Findings, findings } from "./soak-findings.ts";
import { marker, soakPlant, soakTopics } from "./soak-plant.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface SoakOptions {
  /** The minimum duration. Every fault happens at least once. */
  readonly durationMs: number;
  readonly seed: number;
  /** A program to run instead of the agent, to show that the soak test can fail. */
  readonly entry?: string;
}

export interface SoakResult extends Findings {
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  readonly polled: number;
  readonly points: { readonly appended: number; readonly accounted: number; readonly lost: number };
  /** Measured in the agent's last process, each time it had recovered between faults. */
  readonly footprints: readonly Footprint[];
  /** The exit statuses of the agent after orderly stops. */
  readonly exits: readonly (number | null)[];
  readonly failedStarts: readonly string[];
}

const never = new AbortController().signal;
const volumeMiB = 48;

/** Resolves after the test, when everything is delivered. Rejects when something does not recover. */
export async function soak(
  { durationMs, seed, entry }: SoakOptions,
  tell: (line: string) => void,
): Promise<SoakResult> {
  using folder = temporaryFolder();
  using disk = smallVolume(folder.file("volume"));
  const random = seeded(seed);
  const runtime = testRuntime({ seed });
  const started = runtime.clock.now();
  const elapsed = () => (runtime.clock.now() - started) / 1_000;
  const pause = (least: number, most: number) => runtime.clock.sleep(least + random() * (most - least), never);
  await using service = await testService({ throttle: "queue" });
  await using plant = await soakPlant(folder);
  await using agent = new RestartableAgent({
    folder: folder.path,
    configuration: (more) => soakConfiguration(`${disk.path}/data`, service.url, plant.sources(more)),
    ...(entry !== undefined && { entry }),
  });
  const world: SoakWorld = {
    plant,
    agent,
    service,
    random,
    volume: disk.full ? disk.path : undefined,
    while: () => pause(200, 3_000),
  };
  await agent.start();
  const calm = async () => {
    await eventually(async () => {
      const { sources, buffer, upload } = await agent.status();
      const online = sources.length === 3 && sources.every(({ state }) => state === "online");
      return online && buffer.degraded === undefined && upload.state === "delivering" && upload.backlogPoints < 1_000;
    }, patienceMs).catch(async (error: unknown) => {
      throw new Error(`did not recover: ${JSON.stringify(await agent.status())}`, { cause: error });
    });
  };
  await calm();
  plant.begin();

  const happened: SoakFault[] = [];
  const footprints: Footprint[] = [];
  let deck = shuffled(soakFaults, random);
  while (deck.length > 0 || elapsed() < durationMs) {
    // The agent keeps running in the second half, to show leaks.
    const ending = elapsed() < durationMs / 2;
    if (deck.length === 0) deck = shuffled(ending ? soakFaults : soakFaults.filter(({ ends }) => !ends), random);
    const dealt = deal(deck, 2 + Math.floor(random() * 3));
    deck = deck.filter((fault) => !dealt.includes(fault));
    tell(`${Math.round(elapsed() / 1_000)} s: ${dealt.map(({ name }) => name).join(", ")}`);
    if (dealt.some(({ ends }) => ends)) footprints.length = 0;
    await Promise.all(
      dealt.map(async (fault) => {
        await pause(0, 1_000);
        await fault.run(world);
      }),
    );
    happened.push(...dealt);
    await calm();
    footprints.push(agent.footprint());
    await pause(500, 1_500);
  }

  await plant.end();
  await eventually(async () => {
    const { tags, buffer, sources } = await agent.status();
    const marked = tags.filter(({ input, value }) => /^hall\.t\d+$/.test(input) && value === marker);
    if (!sources.every(({ state }) => state === "online")) return false;
    return (
      marked.length === soakTopics &&
      buffer.unsettledPoints < 100 &&
      (await agent.gaps()).every(({ state }) => state !== "filling")
    );
  }, patienceMs);
  footprints.push(agent.footprint());
  await plant[Symbol.asyncDispose]();
  const { buffer } = await eventually(async () => {
    const status = await agent.status();
    return status.buffer.unsettledPoints === 0 && status;
  }, patienceMs);
  const gaps = await agent.gaps();
  await agent.stop();

  const span = { from: epochMicros(started - 60e6), before: epochMicros(runtime.clock.now() + 60e6) };
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, span, runtime, never);
  const lost = buffer.losses.reduce((sum, { points }) => sum + points, 0);
  const names = happened.map(({ name }) => name);
  return {
    faults: Object.fromEntries(soakFaults.map(({ name }) => [name, names.filter((one) => one === name).length])),
    acknowledged: plant.acknowledged.length,
    polled: plant.polled.length,
    points: {
      appended: buffer.appendedPoints,
      accounted: buffer.settledPoints + buffer.refusedPoints + buffer.unsettledPoints + lost,
      lost,
    },
    footprints,
    exits: agent.exits,
    failedStarts: agent.failedStarts,
    ...findings({ plant, stored, gaps, errors: agent.errors }),
  };
}

/** A separate volume if it can be mounted, otherwise a folder. */
function smallVolume(path: string): Disposable & { readonly path: string; readonly full: boolean } {
  mkdirSync(path);
  if (process.getuid?.() !== 0) return { path, full: false, [Symbol.dispose]: () => {} };
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${volumeMiB}m`, "tmpfs", path]);
  return {
    path,
    full: true,
    // A lazy unmount, because after a failure the agent may have open files.
    [Symbol.dispose]: () => execFileSync("umount", ["-l", path]),
  };
}
