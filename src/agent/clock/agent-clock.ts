// The clock that the agent stamps with: the clock of the machine, except where that goes back.
//
//   machine   ────────────┐ set back by 30 s            given: slower by a tenth until the machine has caught up
//                         └────────────────────
//   machine   ────────────┐ set back by an hour         given: goes on by the monotonic clock, until `accept`
//                         └────────────────────
//
// The times given never go back, but by `accept`, and then `extraMicros` keeps what they become apart from what was
// stored under the same times before. The service keeps the last value of a signal and time: without it a clock that is
// set back by an hour overwrites an hour of history.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";

/** The machine is set back by at most this: it is waited for. Microseconds, as all in here without a unit in its name. */
export const shortStepUs = 60e6;
/** How much slower than the machine this clock runs while it is ahead of it. */
const slowing = 0.1;
/** Extra microseconds stay below a millisecond, which is what the service shows. */
const mostExtra = 999;

/** A step of the machine that is followed, and is a step for what was stamped before it. */
const jumpUs = 60e6;

/** What the next run must know: `until` this time the agent has given times, `epoch` tells how often it went back since. */
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
  #jump: { readonly byUs: number; readonly atMs: number } | undefined;

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
    if (machine - this.#given - elapsed > jumpUs) this.#jump = { byUs: machine - this.#given - elapsed, atMs: ms };
    this.#given = machine >= this.#given ? machine : Math.max(machine, Math.round(this.#given + elapsed * rate));
    this.#givenAtMs = ms;
    return epochMicros(this.#given);
  }

  /** The last step of this clock, by more than a minute, and how many milliseconds ago it was. */
  get jump(): { readonly byUs: number; readonly agoMs: number } | undefined {
    return this.#jump && { byUs: this.#jump.byUs, agoMs: this.#machine.monotonic() - this.#jump.atMs };
  }

  monotonic(): number {
    return this.#machine.monotonic();
  }

  sleep(ms: number, signal: AbortSignal, gridMs?: number): Promise<void> {
    return this.#machine.sleep(ms, signal, gridMs);
  }

  /** How far the machine is behind this clock. */
  get aheadUs(): number {
    return this.now() - this.#machine.now();
  }

  /** Whether the machine was set back so far that it is not waited for. */
  get stepped(): boolean {
    return this.aheadUs > shortStepUs;
  }

  get machine(): EpochMicros {
    return this.#machine.now();
  }

  get extraMicros(): number {
    return this.#given < this.#until ? this.#epoch : 0;
  }

  /**
   * What holds once the machine is followed back, or undefined where that is not behind any time given. To be on disk
   * before `accept`. `highest`: a time that an agent before this one may have given.
   */
  next(highest: number = this.now()): ClockEpoch | undefined {
    const machine = this.#machine.now();
    const until = Math.max(highest, this.#until);
    if (machine >= until) return undefined;
    return { epoch: (this.#epoch % mostExtra) + 1, until: epochMicros(until) };
  }

  /** Goes back to where the machine is. */
  accept({ epoch, until }: ClockEpoch): void {
    this.resume({ epoch, until });
    const before = this.now();
    this.#given = this.#machine.now();
    this.#givenAtMs = this.#machine.monotonic();
    if (before - this.#given > jumpUs) this.#jump = { byUs: this.#given - before, atMs: this.#givenAtMs };
  }

  /** What the agent before this one left. */
  resume({ epoch, until }: ClockEpoch): void {
    this.#epoch = epoch;
    this.#until = until;
  }
}
