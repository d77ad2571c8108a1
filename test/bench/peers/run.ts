// One run: a newly started program, a load, the counting sink, and the cost.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../../support/eventually.ts";
import { loopVolume } from "../../support/loop-volume.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { median } from "../agent/process-usage.ts";
import type { Load, RunningLoad } from "./load.ts";
import type { Program, RunningProgram } from "./program.ts";
import type { Setting } from "./setting.ts";
import { type CountingSink, countingSink } from "./sink.ts";
import { deviceBytesWritten, treeUsage } from "./usage.ts";

export interface Pace {
  readonly warmUpSeconds: number;
  readonly windowSeconds: number;
  readonly outageSeconds: number;
}

/** Figures by column name, without those that a procedure does not measure. */
export type Figures = Readonly<Record<string, number>>;

const kills = 10;
const secondsBetweenKills = 5;
/** All points must arrive within this time after the load has ended. */
const drainSeconds = 30;
/** Younger points are in transit, not missing. */
const usualLagSeconds = 2;
/** Space for a buffer, its reserve, and the file system. */
const volumeBytes = 3 * 2 ** 30;

/** The maximum duration of a run without failures, including start and stop. */
export function secondsOf({ procedure }: Load, pace: Pace): number {
  const around = 12;
  if (procedure === "kill") return around + kills * secondsBetweenKills + 10;
  if (procedure === "outage") return around + pace.warmUpSeconds + pace.outageSeconds + 20;
  return around + pace.warmUpSeconds + pace.windowSeconds;
}

export interface Place {
  /** A folder that is kept over all runs. */
  readonly shared: string;
  /** Whether a loop device is available, on which the written bytes can be counted. */
  readonly hasLoopDevice: boolean;
  readonly signal: AbortSignal;
}

/** Why a run failed, in one line. */
export function failure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.message}${error.cause instanceof Error ? `: ${error.cause.message}` : ""}`;
}

/** Rejects when the program does not start, ends by itself, or sends nothing. */
export async function measure(program: Program, load: Load, pace: Pace, place: Place): Promise<Figures> {
  await using cleanup = new AsyncDisposableStack();
  const volume = place.hasLoopDevice
    ? cleanup.use(loopVolume("ext4", volumeBytes)).path
    : cleanup.use(temporaryFolder()).path;
  const sink = cleanup.use(await countingSink());
  const running = cleanup.use(await load.open(place.shared));
  const home = join(place.shared, program.name);
  const data = join(volume, "data");
  for (const folder of [home, data]) mkdirSync(folder, { recursive: true });
  const setting = { plant: running.plant, sinkUrl: sink.url, home, data };
  const run = new Run(program, running, sink, setting, pace, place);
  try {
    switch (load.procedure) {
      case "steady":
        return await run.steady();
      case "idle":
        return await run.idle();
      case "outage":
        return await run.outage();
      case "kill":
        return await run.kill();
    }
  } finally {
    await run.end();
  }
}

class Run {
  readonly #program: Program;
  readonly #load: RunningLoad;
  readonly #sink: CountingSink;
  readonly #setting: Setting;
  readonly #pace: Pace;
  readonly #place: Place;
  #starts = 0;
  #process: RunningProgram | undefined;

  constructor(program: Program, load: RunningLoad, sink: CountingSink, setting: Setting, pace: Pace, place: Place) {
    this.#program = program;
    this.#load = load;
    this.#sink = sink;
    this.#setting = setting;
    this.#pace = pace;
    this.#place = place;
  }

  async steady(): Promise<Figures> {
    const process = await this.#start();
    await this.#load.begin();
    await this.#wait(this.#pace.warmUpSeconds);
    const window = await this.#window(process);
    return { ...window, ...(await this.#judged()), "most MB": treeUsage(process.pid).mostMB };
  }

  async idle(): Promise<Figures> {
    // The first start fills caches.
    await this.#start();
    await this.#process?.stop();
    const began = performance.now();
    const process = await this.#start();
    const startSeconds = (performance.now() - began) / 1_000;
    await this.#wait(this.#pace.warmUpSeconds);
    const window = await this.#window(process);
    const mostMB = treeUsage(process.pid).mostMB;
    // Checks that the program stays connected throughout.
    await this.#load.begin();
    await this.#wait(2);
    return { "start s": startSeconds, ...window, "most MB": mostMB, ...(await this.#judged()) };
  }

  async outage(): Promise<Figures> {
    const process = await this.#start();
    await this.#load.begin();
    await this.#wait(this.#pace.warmUpSeconds);
    const [sentBefore, bytesBefore] = [await this.#load.sent(), bytesIn(this.#setting.data)];
    await this.#sink.down();
    await this.#wait(this.#pace.outageSeconds);
    const sentMeanwhile = (await this.#load.sent()) - sentBefore;
    const bytesMeanwhile = bytesIn(this.#setting.data) - bytesBefore;
    const sentAt: { readonly at: number; readonly sent: number }[] = [];
    await this.#sink.up();
    const back = performance.now();
    await this.#orEnded(
      eventually(async () => {
        sentAt.push({ at: performance.now(), sent: await this.#load.sent() });
        const due = sentAt.findLast(({ at }) => performance.now() - at >= usualLagSeconds * 1_000)?.sent ?? 0;
        await sleep(50);
        return due > 0 && (await this.#sink.counts()).messages >= due;
      }, 120_000),
    );
    const caughtUp = (performance.now() - back) / 1_000;
    const { mostMB } = treeUsage(process.pid);
    return {
      "caught up after s": caughtUp,
      "most MB": mostMB,
      "bytes on disk a point": bytesMeanwhile / sentMeanwhile,
      ...(await this.#judged()),
    };
  }

  async kill(): Promise<Figures> {
    await this.#start();
    await this.#load.begin();
    for (let i = 0; i < kills; i++) {
      await this.#wait(secondsBetweenKills);
      await this.#process?.kill();
      await this.#start();
    }
    return await this.#judged();
  }

  async end(): Promise<void> {
    await this.#process?.stop();
  }

  /** Resolves when the program has subscribed, or its first points have arrived. */
  async #start(): Promise<RunningProgram> {
    const process = this.#program.start(this.#setting);
    this.#process = process;
    this.#starts++;
    const { isSubscribed } = this.#load;
    const isReady = isSubscribed
      ? () => isSubscribed(this.#starts)
      : async () => (await this.#sink.counts()).points > 0;
    await this.#orEnded(eventually(isReady, 60_000));
    return process;
  }

  async #window(process: RunningProgram): Promise<Figures> {
    const before = await this.#now(process);
    const resident: number[] = [];
    const end = performance.now() + this.#pace.windowSeconds * 1_000;
    while (performance.now() < end) {
      await this.#wait(Math.min(1, (end - performance.now()) / 1_000));
      resident.push(treeUsage(process.pid).residentMB);
    }
    const after = await this.#now(process);
    const seconds = (after.at - before.at) / 1_000;
    const points = after.points - before.points;
    const sent = after.sent - before.sent;
    return {
      "% of a core": ((after.cpuSeconds - before.cpuSeconds) / seconds) * 100,
      // Per point sent, because requests carry seconds of points, so the number that arrives in a window varies.
      ...(sent > 100 && { "user µs a point": ((after.userSeconds - before.userSeconds) * 1e6) / sent }),
      MB: median(resident),
      ...(this.#place.hasLoopDevice && { "device kB/s": (after.written - before.written) / 1_000 / seconds }),
      ...(sent > 0 && { "sent/s": sent / seconds }),
      "received/s": points / seconds,
    };
  }

  async #now({ pid }: RunningProgram) {
    const [{ points }, sent] = [await this.#sink.counts(), await this.#load.sent()];
    const written = this.#place.hasLoopDevice ? deviceBytesWritten(this.#setting.data) : 0;
    return { ...treeUsage(pid), points, sent, written, at: performance.now() };
  }

  /** Ends the load, waits for the rest, and compares the points sent with those received. */
  async #judged(): Promise<Figures> {
    const sent = await this.#load.stop();
    const isMqtt = this.#load.isSubscribed !== undefined;
    const received = async () => {
      const { messages, points } = await this.#sink.counts();
      return isMqtt ? messages : points;
    };
    const end = performance.now() + drainSeconds * 1_000;
    while ((await received()) < sent && performance.now() < end) {
      await this.#wait(0.2);
      // The last cycle of a disconnected device may never arrive.
      if (!isMqtt && performance.now() > end - (drainSeconds - 5) * 1_000) break;
    }
    const came = await received();
    const { repeated } = await this.#sink.counts();
    return { sent, received: came, ...(isMqtt && { missing: sent - came, "sent again": repeated }) };
  }

  #wait(seconds: number): Promise<void> {
    return this.#orEnded(sleep(seconds * 1_000, undefined, { signal: this.#place.signal }));
  }

  /** Rejects when the program ends in the meantime, or the bench is interrupted. */
  #orEnded<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#place;
    const interrupted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return Promise.race([work, interrupted, ...(this.#process ? [this.#process.ended] : [])]);
  }
}

function bytesIn(folder: string): number {
  return Number(execFileSync("du", ["-s", "-B1", folder], { encoding: "utf8" }).split("\t")[0]);
}
