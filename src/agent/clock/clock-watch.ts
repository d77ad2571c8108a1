// Decides whether the wall clock can be trusted. It may start in 1970 without a battery, or be set wrong by hand.
// Points with wrong times are never corrected and may overwrite correct ones.
import { readdir } from "node:fs/promises";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { checkGridMs, type MetricDeclaration, type Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { exists } from "../../lib/files/paths.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import type { AgentClock, ClockFile } from "./agent-clock.ts";
import { clockVote } from "./clock-vote.ts";

/** Evidence from the operating system about whether the machine's clock is right. */
export interface TimeEvidence {
  /** Whether time synchronisation has set the clock. `notYet`: it runs but has not. `unknown`: no evidence. */
  synchronised(): Promise<"yes" | "notYet" | "unknown">;
  /** Whether the machine has a clock that runs while it is switched off. */
  hasHardwareClock(): Promise<boolean>;
}

/** systemd-timesyncd creates this folder when it runs, and `synchronized` in it once it has set the clock. */
const timesync = "/run/systemd/timesync";

export const machineEvidence: TimeEvidence = {
  async synchronised() {
    if (await exists(`${timesync}/synchronized`)) return "yes";
    return (await exists(timesync)) ? "notYet" : "unknown";
  },
  async hasHardwareClock() {
    return (await readdir("/sys/class/rtc").catch(() => [])).length > 0;
  },
};

export interface ClockWatchOptions {
  /** hold: readings stamped by an untrusted clock wait; write: they are stored at once. */
  readonly policy: "hold" | "write";
  readonly evidence: TimeEvidence;
  /** When an agent last ran with this data directory. Undefined: never. */
  readonly lastRan: EpochMicros | undefined;
  readonly clock: AgentClock;
  readonly file: Pick<ClockFile, "save">;
}

const metrics = {
  trusted: { name: "clock_trusted", help: "1 while the times of this machine can be believed, else 0" },
  steps: { name: "clock_steps_total", help: "Times the wall clock was set while the agent ran, by more than a second" },
} as const satisfies Record<string, MetricDeclaration>;

/** Before the first release of the agent. A clock that shows an earlier time is wrong. */
const earliest = epochMicros(Date.parse("2025-01-01T00:00:00Z") * 1_000);
const checkEveryMs = 1_000;
/** A clock this much behind the last run is wrong, not corrected. */
const behindUs = 60e6;
/** How long minor problems hold readings. A plant without time synchronisation must still be recorded. */
const behindForMs = 120_000;
const unsyncedForMs = 60_000;
/** Smallest step of the wall clock that is reported. */
const stepUs = 1e6;

interface ClockProblem {
  readonly reason: string;
  /** How long this problem holds readings, from the start or the last step. Undefined: until it is resolved. */
  readonly forMs?: number;
}

/** Disposing it stops the checks. */
export type ClockWatch = Awaited<ReturnType<typeof openClockWatch>>;

/** Resolves once the first judgement of the clock is complete. */
export async function openClockWatch(options: ClockWatchOptions, runtime: Runtime) {
  const { clock, evidence, file, policy } = options;
  const trustedGauge = runtime.metrics.gauge(metrics.trusted);
  const steps = runtime.metrics.counter(metrics.steps);
  steps.add(0);
  const vote = clockVote(options, runtime.log);
  let { lastRan } = options;
  let current: ClockProblem | undefined;
  let lastVoted: string | undefined;
  /** Monotonic time of the start or of the last step. `forMs` counts from here. */
  let beganMs = clock.monotonic();
  /** The machine's clock and the monotonic clock at the last check. */
  let seen = { wall: clock.machine, ms: beganMs };
  /** The machine was set back, and `follow` has not run yet. */
  let setBack = false;
  /** No judgement has completed since the last step. */
  let unjudged = false;
  let waitingFor = "";
  let release = Promise.withResolvers<void>();

  function holds(): boolean {
    const waits = current !== undefined || vote.holds || vote.undecided;
    return waits && policy === "hold";
  }

  function consequence(): string {
    return holds()
      ? "readings that it would stamp wait until it is"
      : "readings are stored with its times all the same";
  }

  async function work(): Promise<void> {
    detectStep();
    if (current || unjudged) await reassess();
    await vote.decide();
    show();
  }

  /** Detects steps. A step forward is followed at once; a step back waits for a judgement. */
  function detectStep(): void {
    const [wall, ms] = [clock.machine, clock.monotonic()];
    const expected = seen.wall + (ms - seen.ms) * 1_000;
    const back = wall < seen.wall;
    seen = { wall, ms };
    const step = wall - expected;
    if (step > stepUs || (back && step < -stepUs)) stepped(expected, wall);
    // The clock was set forward again before the judgement.
    if (setBack && !clock.stepped) setBack = false;
  }

  /** A step resets the judgement, as at a start. */
  function stepped(expected: number, wall: number): void {
    steps.add(1);
    beganMs = clock.monotonic();
    unjudged = true;
    vote.stepped(wall - expected);
    runtime.log.warn({ from: rfc3339(expected), to: rfc3339(wall) }, "the wall clock was set");
    if (clock.stepped) {
      setBack = true;
      take({ reason: setBackReason(clock), forMs: behindForMs });
    } else if (wall < earliest) take({ reason: impossible(wall) });
  }

  async function reassess(): Promise<void> {
    const { log } = runtime;
    const began = beganMs;
    const problem = await judge();
    // Another step occurred meanwhile, so this judgement is stale.
    if (began !== beganMs) return;
    unjudged = false;
    const waited = clock.monotonic() - began;
    if (problem && (problem.forMs === undefined || (waited < problem.forMs && policy === "hold"))) {
      take(problem);
      return;
    }
    if (problem) log.warn({ reason: problem.reason, afterMs: Math.round(waited) }, "the clock is trusted nevertheless");
    else if (current)
      log.info({ now: rfc3339(clock.machine) }, "the clock is set, readings that waited get their right times");
    await follow();
    lastRan = undefined;
    take(undefined);
  }

  /** Follows the machine back. `extraMicros` keeps new points apart from points stored under the same times. */
  async function follow(): Promise<void> {
    setBack = false;
    if (!clock.stepped) return;
    const epoch = clock.next();
    if (epoch === undefined) return;
    await file.save(epoch);
    clock.accept(epoch);
  }

  function take(problem: ClockProblem | undefined): void {
    const before = current;
    current = problem;
    if (problem && !before) complain(problem.reason);
    show();
  }

  function complain(reason: string): void {
    runtime.log.error({ reason, hint: unsetClockHint }, `the clock is not set: ${consequence()}`);
  }

  /** Updates the metric and the log, and wakes up waiting readings. */
  function show(): void {
    const voted = vote.reason;
    trustedGauge.set(current === undefined && voted === undefined ? 1 : 0);
    if (voted !== undefined && lastVoted === undefined && current === undefined) complain(voted);
    lastVoted = voted;
    const waiting = `${holds()} ${vote.undecided}`;
    if (waiting === waitingFor) return;
    waitingFor = waiting;
    release.resolve();
    release = Promise.withResolvers();
  }

  async function judge(): Promise<ClockProblem | undefined> {
    const now = clock.machine;
    if (now < earliest) return { reason: impossible(now) };
    const synchronised = await evidence.synchronised();
    if (synchronised === "yes") return undefined;
    if (setBack) return { reason: setBackReason(clock), forMs: behindForMs };
    if (lastRan !== undefined && now < lastRan - behindUs)
      return { reason: `it says ${rfc3339(now)}, and the agent ran until ${rfc3339(lastRan)}`, forMs: behindForMs };
    if (synchronised === "notYet" && !(await evidence.hasHardwareClock()))
      return { reason: "the machine has no hardware clock, and time is not synchronised yet", forMs: unsyncedForMs };
    return undefined;
  }

  take(await judge());
  const every = { everyMs: checkEveryMs, gridMs: checkGridMs, first: "later" } as const;
  const working = repeat(work, { ...every, failure: "the clock is no longer watched" }, runtime);

  const watch = {
    /** Whether readings with times of this machine are held. Checks for steps first. */
    get holding(): boolean {
      detectStep();
      return holds();
    },
    /** Whether nothing is wrong with the machine's clock. Checks for steps first. */
    get trusted(): boolean {
      detectStep();
      return current === undefined && vote.reason === undefined;
    },
    /** Whether it is too early to decide whose clock is wrong when a device is ahead. */
    get undecided(): boolean {
      return watch.trusted && vote.undecided;
    },
    /** Why the clock is not trusted and what happens to its times, as text for the operator. Undefined: it is trusted. */
    get problem(): { readonly reason: string; readonly consequence: string } | undefined {
      const reason = current?.reason ?? vote.reason;
      return reason === undefined ? undefined : { reason, consequence: consequence() };
    },
    /** Resolves when fewer readings need to wait than now; immediately if none do. */
    get released(): Promise<void> {
      return watch.holding || watch.undecided ? release.promise : Promise.resolve();
    },
    /** Records the times that devices give. Returns whether one of them is ahead. */
    note(source: string, readings: readonly Reading[]): boolean {
      // Device times that arrive after a step are compared with the clock after it.
      detectStep();
      const isAhead = vote.note(source, readings);
      if (isAhead) show();
      return isAhead;
    },
    [Symbol.asyncDispose]: () => working[Symbol.asyncDispose](),
  };
  return watch;
}

export const unsetClockHint = "set the clock, or have it synchronised; with agent.unsyncedClock: write nothing waits";

function impossible(now: number): string {
  return `it says ${rfc3339(now)}, which is impossible`;
}

function setBackReason(clock: AgentClock): string {
  const seconds = Math.round(clock.aheadUs / 1e6);
  return `it was set back by ${formatDuration(seconds * 1_000)}, to ${rfc3339(clock.machine)}`;
}

export function rfc3339(time: number): string {
  return new Date(time / 1_000).toISOString();
}
