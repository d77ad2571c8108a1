// What a device refuses is left alone for a while: as long as it has been refused already, from a minute to an hour.
import type { Clock } from "../../../core/runtime.ts";

interface Rest {
  /** Monotonic time in milliseconds. */
  readonly until: number;
  readonly ms: number;
  readonly reason: string;
}

const shortestMs = 60_000;
const longestMs = 3_600_000;

/** By block; what becomes of a block nobody asks for any more is of no matter. */
export class Refusals {
  readonly #clock: Clock;
  #rests = new WeakMap<object, Rest>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why `block` is not asked for now; undefined: it may be. */
  reason(block: object): string | undefined {
    const rest = this.#rests.get(block);
    return rest && this.#clock.monotonic() < rest.until ? rest.reason : undefined;
  }

  /** Leaves `block` alone, at once for the longest time where the device cannot come to have it. True if it was not refused before. */
  add(block: object, reason: string, { forLong }: { readonly forLong: boolean }): boolean {
    const known = this.#rests.get(block);
    const ms = forLong ? longestMs : Math.min(known === undefined ? shortestMs : known.ms * 2, longestMs);
    this.#rests.set(block, { until: this.#clock.monotonic() + ms, ms, reason });
    return known === undefined;
  }

  /** The device gave `block`. */
  lift(block: object): void {
    this.#rests.delete(block);
  }

  liftAll(): void {
    this.#rests = new WeakMap();
  }
}
