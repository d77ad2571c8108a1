// The clock that stamps readings. It follows the machine's clock and never goes back, except by `accept`.
//
//   machine   ────────────┐ set back by 30 s            given: a tenth slower, until the machine has caught up
//                         └────────────────────
//   machine   ────────────┐ set back by an hour         given: follows the monotonic clock, until `accept`
//                         └────────────────────
//
// The service keeps one value for each signal and time, so a clock set back by an hour would overwrite an hour of
// history. After `accept`, `extraMicros` distinguishes new points from those stored under the same times before. The
// state is kept in `clock.json`, so that the next agent continues from it.
import { join } from "node:path";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock, Logger } from "../../core/runtime.ts";
import { stateFile } from "../../lib/files/state-file.ts";
import type { Life } from "../gaps/gap-file.ts";

/** Largest backward step that this clock waits out. All values without a unit in their name are microseconds. */
const shortStepUs = 60e6;
/** Fraction by which this clock runs slower while it is ahead of the machine. */
const slowing = 0.1;
/** Extra microseconds stay below a millisecond, the resolution that the service shows. */
const mostExtra = 999;

/** Larger steps are reported by `jumps`. */
const jumpUs = 60e6;
/** Smaller ones are the resolution of the two clocks, and adjustments of their rates. */
const leastStepUs = 10_000;
/** More steps within a minute would be those of a broken clock. */
const mostSteps = 20;

interface Step {
  /** The time without it. */
  readonly from: number;
  readonly byUs: number;
  readonly atMs: number;
}

/** State for the next run. The agent has given times up to `until`; `epoch` counts how often the clock went back. */
export interface ClockEpoch {
  readonly epoch: number;
  readonly until: EpochMicros;
}

export class AgentClock implements Clock {
  readonly #machine: Clock;
  #given: number;
  #givenAtMs: number;
  #epoch = 0;
  #until = Number.NEGATIVE_INFINITY;
  readonly #steps: Step[] = [];
  #stepped = 0;

  constructor(machine: Clock) {
    this.#machine = machine;
    this.#given = machine.now();
    this.#givenAtMs = machine.monotonic();
  }

  now(): EpochMicros {
    const machine = this.#machine.now();
    const ms = this.#machine.monotonic();
    const elapsed = (ms - this.#givenAtMs) * 1_000;
    const rate = this.#given - machine <= shortStepUs ? 1 - slowing : 1;
    // A step back is followed only by `accept`.
    if (machine > this.#given + elapsed) this.#noteStep(this.#given + elapsed, machine, ms);
    this.#given = machine >= this.#given ? machine : Math.max(machine, Math.round(this.#given + elapsed * rate));
    this.#givenAtMs = ms;
    return epochMicros(this.#given);
  }

  /** Sum of all steps of this clock, in microseconds. Running more slowly is none. Complete after a call of `now`. */
  get steppedUs(): number {
    return this.#stepped;
  }

  /** The steps of this clock of more than a minute within the last `ms` milliseconds, in microseconds, latest last. */
  jumps(ms: number): readonly number[] {
    if (this.#steps.length === 0) return [];
    const since = this.#machine.monotonic() - ms;
    const isJump = ({ byUs, atMs }: Step) => Math.abs(byUs) > jumpUs && atMs >= since;
    return this.#steps.filter(isJump).map(({ byUs }) => byUs);
  }

  /**
   * Microseconds by which this clock was set forward after it gave `time`, in steps of up to a minute between two
   * monotonic times in milliseconds.
   */
  forwardAfter(time: number, sinceMs: number, untilMs: number): number {
    let sum = 0;
    for (const { from, byUs, atMs } of this.#steps)
      if (byUs > 0 && byUs <= jumpUs && from >= time && atMs >= sinceMs && atMs <= untilMs) sum += byUs;
    return sum;
  }

  monotonic(): number {
    return this.#machine.monotonic();
  }

  sleep(ms: number, signal: AbortSignal, gridMs?: number): Promise<void> {
    return this.#machine.sleep(ms, signal, gridMs);
  }

  /** How far this clock is ahead of the machine's. */
  get aheadUs(): number {
    return this.now() - this.#machine.now();
  }

  /** Whether the machine was set back too far to be waited for. */
  get stepped(): boolean {
    return this.aheadUs > shortStepUs;
  }

  get machine(): EpochMicros {
    return this.#machine.now();
  }

  extraMicros(time: number): number {
    return time <= this.#until ? this.#epoch : 0;
  }

  /** The state after going back, which must be persisted before `accept`. Undefined: no given time lies ahead. */
  next(highest: number = this.now()): ClockEpoch | undefined {
    const machine = this.#machine.now();
    const until = Math.max(highest, this.#until);
    if (machine > until) return undefined;
    return { epoch: (this.#epoch % mostExtra) + 1, until: epochMicros(until) };
  }

  /** Sets this clock back to the machine's time. */
  accept({ epoch, until }: ClockEpoch): void {
    this.resume({ epoch, until });
    const before = this.now();
    this.#given = this.#machine.now();
    this.#givenAtMs = this.#machine.monotonic();
    this.#noteStep(before, this.#given, this.#givenAtMs);
  }

  /** Restores the state of the previous run. */
  resume({ epoch, until }: ClockEpoch): void {
    this.#epoch = epoch;
    this.#until = until;
  }

  #noteStep(from: number, to: number, atMs: number): void {
    const byUs = to - from;
    if (Math.abs(byUs) <= leastStepUs) return;
    this.#stepped += byUs;
    this.#steps.push({ from, byUs, atMs });
    if (this.#steps.length > mostSteps) this.#steps.shift();
  }
}

/** The `ClockEpoch`: how often the clock went back, and until which time that matters. */
const content = z.object({ epoch: z.int().min(0).max(999), until: z.int().transform(epochMicros) });

export type ClockFile = ReturnType<typeof clockFile>;

/** `clock.json`. Its content is undefined if the clock never went back, or if the file is damaged. */
export function clockFile(dataDir: string, log: Logger) {
  const unwritable = "cannot persist that the clock went back";
  return stateFile(join(dataDir, "clock.json"), content, { log, unwritable });
}

/** A sign of life is written every 10 s. A killed agent may have given times for this long after its last one. */
const unsignedUs = 11e6;
/** A backward difference below this is slew by time synchronisation, not a step. */
const slewedUs = 5_000;

/** Continues from the state of the previous agent, so that no time is given twice. */
export async function resumeClock(
  clock: AgentClock,
  file: Pick<ClockFile, "load" | "save">,
  former: Omit<Life, "sources"> | undefined,
): Promise<void> {
  const left = await file.load();
  if (left) clock.resume(left);
  if (!former || clock.machine > highestGiven(former, clock)) return;
  const next = clock.next(highestGiven(former, clock));
  if (!next) return;
  await file.save(next);
  clock.accept(next);
}

function highestGiven({ time, stopped, monotonic }: Omit<Life, "sources">, clock: AgentClock): number {
  if (stopped) return time;
  const passedMs = monotonic === undefined ? -1 : clock.monotonic() - monotonic;
  // The machine has not been restarted since, and its clock was not set back.
  if (passedMs >= 0 && clock.machine - time >= passedMs * 1_000 - slewedUs) return time;
  return time + unsignedUs;
}
