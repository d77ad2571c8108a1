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

/** By block. Entries of blocks that are no longer polled are never read. */
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

/** Some devices say nothing, or that they failed, when they are asked for too much: after so many times halves are tried. */
export const failuresToSplit = 3;

/** By block. Entries of blocks that are no longer polled are never read. */
export class FailureRuns {
  #runs = new WeakMap<object, number>();

  /** One more; gives how many in a row that is. */
  add(block: object): number {
    const failures = (this.#runs.get(block) ?? 0) + 1;
    this.#runs.set(block, failures);
    return failures;
  }

  end(block: object): void {
    this.#runs.delete(block);
  }

  endAll(): void {
    this.#runs = new WeakMap();
  }
}

/** Whether it is time to look for the cause in the block, which costs requests: after 3, 6, 12, 24 … failures. */
export function isTimeToSplit(failures: number): boolean {
  return failures >= failuresToSplit && Number.isInteger(Math.log2(failures / failuresToSplit));
}

// What was found out of the lengths that a unit answers to, while a block that it is silent about is taken apart. Pure.

/** Blocks of one length that are silent while no longer one is answered: after so many it is the length that matters, not an address. */
const silentToBeTooLong = 2;
/** After so many silences in a row it is in doubt whether the unit is still there. */
const silentToDoubt = 3;

export class LengthSearch {
  readonly #silent: number[] = [];
  #longestAnswered = 0;
  #silentInARow = 0;

  silent(count: number): void {
    this.#silent.push(count);
    this.#silentInARow++;
  }

  answered(count: number): void {
    this.#longestAnswered = Math.max(this.#longestAnswered, count);
    this.#silentInARow = 0;
  }

  /** Whether a block of `count` need not be asked for, since the unit would be silent. */
  isTooLong(count: number): boolean {
    if (count <= this.#longestAnswered) return false;
    return this.#silent.filter((length) => length <= count).length >= silentToBeTooLong;
  }

  /** Whether to ask first whether the unit is still there. */
  get isInDoubt(): boolean {
    return this.#silentInARow >= silentToDoubt;
  }

  /** The unit answered to something else. */
  unitAnswered(): void {
    this.#silentInARow = 0;
  }
}
