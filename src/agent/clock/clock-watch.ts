// Decides whether the wall clock can be trusted. It may start in 1970 without a battery, or be set wrong by hand.
// Points with wrong times are never corrected and may overwrite correct ones.
import type { EpochMicros } from "../../core/point.ts";
import { epochMicros } from "../../core/point.ts";
import { checkGridMs, type MetricDeclaration, type Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import type { AgentClock } from "./agent-clock.ts";
import type { ClockFile } from "./clock-file.ts";
import { type ClockVote, clockVote } from "./clock-vote.ts";
import type { TimeEvidence } from "./time-evidence.ts";

export interface ClockWatchOptions {
  /** hold: readings stamped by an untrusted clock wait; write: they are stored at once. */
  readonly policy: "hold" | "write";
  readonly evidence: TimeEvidence;
  /** When an agent last ran with this data directory. Undefined: never. */
  readonly lastRan: EpochMicros | undefined;
  readonly clock: AgentClock;
  readonly file: Pick<ClockFile, "write">;
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
/** How long minor doubts hold readings. A plant without time synchronisation must still be recorded. */
const behindForMs = 120_000;
const unsyncedForMs = 60_000;
/** Smallest step of the wall clock that is reported. */
const stepUs = 1e6;

interface Doubt {
  readonly reason: string;
  /** How long this doubt holds readings, from the start or the last step. Undefined: until it is resolved. */
  readonly forMs?: number;
}

/** Disposing it stops the checks. */
export class ClockWatch implements AsyncDisposable {
  readonly #options: ClockWatchOptions;
  readonly #runtime: Runtime;
  readonly #trusted;
  readonly #steps;
  /** Monotonic time of the start or of the last step. `forMs` counts from here. */
  #beganMs: number;
  /** The machine's clock and the monotonic clock at the last check. */
  #seen: { readonly wall: number; readonly ms: number };
  #lastRan: EpochMicros | undefined;
  #doubt: Doubt | undefined;
  /** The machine was set back, and `#follow` has not run yet. */
  #setBack = false;
  /** No judgement has completed since the last step. */
  #unjudged = false;
  /** The comparison of this machine's clock with the clocks of devices. */
  readonly #vote: ClockVote;
  #voted: string | undefined;
  #waited = "";
  #released = Promise.withResolvers<void>();
  #working: AsyncDisposable | undefined;

  private constructor(options: ClockWatchOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#lastRan = options.lastRan;
    this.#beganMs = runtime.clock.monotonic();
    this.#seen = { wall: options.clock.machine, ms: this.#beganMs };
    this.#trusted = runtime.metrics.gauge(metrics.trusted);
    this.#steps = runtime.metrics.counter(metrics.steps);
    this.#steps.add(0);
    this.#vote = clockVote(options, runtime.log);
  }

  /** Resolves once the first judgement of the clock is complete. */
  static async open(options: ClockWatchOptions, runtime: Runtime): Promise<ClockWatch> {
    const watch = new ClockWatch(options, runtime);
    watch.#take(await watch.#judge());
    const work = {
      everyMs: checkEveryMs,
      gridMs: checkGridMs,
      first: "later",
      failure: "the clock is no longer watched",
    } as const;
    watch.#working = repeat(() => watch.#work(), work, runtime);
    return watch;
  }

  /** Whether readings with times of this machine are held. Checks for steps first. */
  get holding(): boolean {
    this.#look();
    return this.#holds;
  }

  /** Whether there is no doubt about the machine's clock. */
  get trusted(): boolean {
    this.#look();
    return this.#doubt === undefined && this.#vote.reason === undefined;
  }

  /** Whether it is too early to decide whose clock is wrong when a device is ahead. */
  get undecided(): boolean {
    return this.trusted && this.#vote.undecided;
  }

  /** Why the clock is not trusted and what happens to its times, as text for the operator. Undefined: it is trusted. */
  get doubt(): { readonly reason: string; readonly consequence: string } | undefined {
    const reason = this.#doubt?.reason ?? this.#vote.reason;
    return reason === undefined ? undefined : { reason, consequence: this.#consequence };
  }

  /** Resolves when fewer readings need to wait than now; immediately if none do. */
  get released(): Promise<void> {
    return this.holding || this.undecided ? this.#released.promise : Promise.resolve();
  }

  /** Records the times that devices give. Returns whether one of them is ahead. */
  note(source: string, readings: readonly Reading[]): boolean {
    // Device times that arrive after a step are compared with the clock after it.
    this.#look();
    const isAhead = this.#vote.note(source, readings);
    if (isAhead) this.#show();
    return isAhead;
  }

  get #holds(): boolean {
    const waits = this.#doubt !== undefined || this.#vote.holds || this.#vote.undecided;
    return waits && this.#options.policy === "hold";
  }

  get #consequence(): string {
    return consequences[this.#holds ? "hold" : "write"];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#working?.[Symbol.asyncDispose]();
  }

  async #work(): Promise<void> {
    this.#look();
    if (this.#doubt || this.#unjudged) await this.#lookAgain();
    await this.#vote.decide();
    this.#show();
  }

  /** Detects steps. A step forward is followed at once; a step back waits for a judgement. */
  #look(): void {
    const { clock } = this.#options;
    const [wall, ms] = [clock.machine, clock.monotonic()];
    const expected = this.#seen.wall + (ms - this.#seen.ms) * 1_000;
    const back = wall < this.#seen.wall;
    this.#seen = { wall, ms };
    const step = wall - expected;
    if (step > stepUs || (back && step < -stepUs)) this.#stepped(expected, wall);
    // The clock was set forward again before the judgement.
    if (this.#setBack && !clock.stepped) this.#setBack = false;
  }

  /** A step resets the judgement, as at a start. */
  #stepped(expected: number, wall: number): void {
    const { clock } = this.#options;
    this.#steps.add(1);
    this.#beganMs = clock.monotonic();
    this.#unjudged = true;
    this.#vote.stepped(wall - expected);
    this.#runtime.log.warn({ from: rfc3339(expected), to: rfc3339(wall) }, "the wall clock was set");
    if (clock.stepped) {
      this.#setBack = true;
      this.#take({ reason: setBackReason(clock), forMs: behindForMs });
    } else if (wall < earliest) this.#take({ reason: impossible(wall) });
  }

  async #lookAgain(): Promise<void> {
    const { clock, log } = this.#runtime;
    const began = this.#beganMs;
    const doubt = await this.#judge();
    // Another step occurred meanwhile, so this judgement is stale.
    if (began !== this.#beganMs) return;
    this.#unjudged = false;
    const waited = clock.monotonic() - began;
    if (doubt && (doubt.forMs === undefined || (waited < doubt.forMs && this.#options.policy === "hold"))) {
      this.#take(doubt);
      return;
    }
    if (doubt) log.warn({ reason: doubt.reason, afterMs: Math.round(waited) }, "the clock is trusted nevertheless");
    else if (this.#doubt)
      log.info(
        { now: rfc3339(this.#options.clock.machine) },
        "the clock is set, readings that waited get their right times",
      );
    await this.#follow();
    this.#lastRan = undefined;
    this.#take(undefined);
  }

  /** Follows the machine back. `extraMicros` keeps new points apart from points stored under the same times. */
  async #follow(): Promise<void> {
    const { clock, file } = this.#options;
    this.#setBack = false;
    if (!clock.stepped) return;
    const epoch = clock.next();
    if (epoch === undefined) return;
    await file.write(epoch);
    clock.accept(epoch);
  }

  #take(doubt: Doubt | undefined): void {
    const before = this.#doubt;
    this.#doubt = doubt;
    if (doubt && !before) this.#complain(doubt.reason);
    this.#show();
  }

  #complain(reason: string): void {
    const message = `the clock is not set: ${this.#consequence}`;
    this.#runtime.log.error({ reason, hint: unsetClockHint }, message);
  }

  /** Updates the metric and the log, and wakes up waiting readings. */
  #show(): void {
    const voted = this.#vote.reason;
    this.#trusted.set(this.#doubt === undefined && voted === undefined ? 1 : 0);
    if (voted !== undefined && this.#voted === undefined && this.#doubt === undefined) this.#complain(voted);
    this.#voted = voted;
    const waiting = `${this.#holds} ${this.#vote.undecided}`;
    if (waiting === this.#waited) return;
    this.#waited = waiting;
    this.#released.resolve();
    this.#released = Promise.withResolvers();
  }

  async #judge(): Promise<Doubt | undefined> {
    const { evidence, clock } = this.#options;
    const now = clock.machine;
    if (now < earliest) return { reason: impossible(now) };
    const synchronised = await evidence.synchronised();
    if (synchronised === "yes") return undefined;
    if (this.#setBack) return { reason: setBackReason(clock), forMs: behindForMs };
    if (this.#lastRan !== undefined && now < this.#lastRan - behindUs)
      return {
        reason: `it says ${rfc3339(now)}, and the agent ran until ${rfc3339(this.#lastRan)}`,
        forMs: behindForMs,
      };
    if (synchronised === "notYet" && !(await evidence.hasHardwareClock()))
      return { reason: "the machine has no hardware clock, and time is not synchronised yet", forMs: unsyncedForMs };
    return undefined;
  }
}

export const unsetClockHint = "set the clock, or have it synchronised; with agent.unsyncedClock: write nothing waits";

const consequences = {
  hold: "readings that it would stamp wait until it is",
  write: "readings are stored with its times all the same",
} as const;

function impossible(now: number): string {
  return `it says ${rfc3339(now)}, which is impossible`;
}

function setBackReason(clock: AgentClock): string {
  const seconds = Math.round(clock.aheadUs / 1e6);
  return `it was set back by ${formatDuration(seconds * 1_000)}, to ${rfc3339(clock.machine)}`;
}

function rfc3339(time: number): string {
  return new Date(time / 1_000).toISOString();
}
