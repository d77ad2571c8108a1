// Start time of a state, corrected when the wall clock is set: a clock step must not turn minutes into decades.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";

/** Deviation of the wall clock from the monotonic clock that is tolerated without a correction, in microseconds. */
const toleratedUs = 1e6;

export class Since {
  readonly #clock: Clock;
  #wall: EpochMicros;
  #monotonicMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wall = clock.now();
    this.#monotonicMs = clock.monotonic();
  }

  restart(): void {
    this.#wall = this.#clock.now();
    this.#monotonicMs = this.#clock.monotonic();
  }

  /** Wall time of the start. Constant until the clock is set. */
  get time(): EpochMicros {
    const began = epochMicros(this.#clock.now() - (this.#clock.monotonic() - this.#monotonicMs) * 1_000);
    if (Math.abs(began - this.#wall) > toleratedUs) this.#wall = began;
    return this.#wall;
  }
}
