// The clock that stamps readings. It follows the machine's clock and never goes back, except by `accept`.
//
//   machine   ────────────┐ set back by 30 s            given: a tenth slower, until the machine has caught up
//                         └────────────────────
//   machine   ────────────┐ set back by an hour         given: follows the monotonic clock, until `accept`
//                         └────────────────────
//
// The service keeps one value for each signal and time, so a clock set back by an hour would overwrite an hour of
// history. After `accept`, `extraMicros` distinguishes new points from those stored under the same times before.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";

/** Largest backward step that this clock waits out. All values without a unit in their name are microseconds. */
const shortStepUs = 60e6;
/** Fraction by which this clock runs slower while it is ahead of the machine. */
const slowing = 0.1;
/** Extra microseconds stay below a millisecond, the resolution that the service shows. */
const mostExtra = 999;

/** Larger backward steps in `accept` are reported as `jump`. */
const jumpUs = 60e6;

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

  /** The last backward step of this clock of more than a minute, and how many milliseconds ago it was. */
  get jump(): { readonly byUs: number; readonly agoMs: number } | undefined {
    return this.#jump && { byUs: this.#jump.byUs, agoMs: this.#machine.monotonic() - this.#jump.atMs };
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

  get extraMicros(): number {
    return this.#given < this.#until ? this.#epoch : 0;
  }

  /** The state after going back, which must be persisted before `accept`. Undefined: no given time lies ahead. */
  next(highest: number = this.now()): ClockEpoch | undefined {
    const machine = this.#machine.now();
    const until = Math.max(highest, this.#until);
    if (machine >= until) return undefined;
    return { epoch: (this.#epoch % mostExtra) + 1, until: epochMicros(until) };
  }

  /** Sets this clock back to the machine's time. */
  accept({ epoch, until }: ClockEpoch): void {
    this.resume({ epoch, until });
    const before = this.now();
    this.#given = this.#machine.now();
    this.#givenAtMs = this.#machine.monotonic();
    if (before - this.#given > jumpUs) this.#jump = { byUs: this.#given - before, atMs: this.#givenAtMs };
  }

  /** Restores the state of the previous run. */
  resume({ epoch, until }: ClockEpoch): void {
    this.#epoch = epoch;
    this.#until = until;
  }
}
