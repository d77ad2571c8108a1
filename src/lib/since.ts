// When something began, in the wall clock as it is now: one that is set meanwhile must not make minutes of it decades.
import { type EpochMicros, epochMicros } from "../core/point.ts";
import type { Clock } from "../core/runtime.ts";

/** So far the wall clock may run away from the monotonic one, which never jumps. In microseconds. */
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

  /** Wall time of the begin. The same at each call, until the clock is set. */
  get time(): EpochMicros {
    const began = epochMicros(this.#clock.now() - (this.#clock.monotonic() - this.#monotonicMs) * 1_000);
    if (Math.abs(began - this.#wall) > toleratedUs) this.#wall = began;
    return this.#wall;
  }
}
