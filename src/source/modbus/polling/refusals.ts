// Stops requests for a refused block for a while: one minute, doubled with each refusal, up to an hour.
import type { Clock } from "../../../core/runtime.ts";

interface Rest {
  /** Monotonic time in milliseconds. */
  readonly until: number;
  readonly ms: number;
  readonly reason: string;
}

const shortestMs = 60_000;
const longestMs = 3_600_000;

/** Refusals by block. Entries of blocks that are no longer polled are never read. */
export type Refusals = ReturnType<typeof refusedBlocks>;

export function refusedBlocks(clock: Clock) {
  const rests = new WeakMap<object, Rest>();

  return {
    /** Why `block` must not be requested now. Undefined if it may be. */
    reason(block: object): string | undefined {
      const rest = rests.get(block);
      return rest && clock.monotonic() < rest.until ? rest.reason : undefined;
    },
    /** Records a refusal; `forLong`: for the longest time at once. True for the first refusal. */
    add(block: object, reason: string, { forLong }: { readonly forLong: boolean }): boolean {
      const known = rests.get(block);
      const ms = forLong ? longestMs : Math.min(known === undefined ? shortestMs : known.ms * 2, longestMs);
      rests.set(block, { until: clock.monotonic() + ms, ms, reason });
      return known === undefined;
    },
    lift(block: object): void {
      rests.delete(block);
    },
  };
}

/** Some devices are silent or fail if a request is too long. After this many failures, halves are tried. */
export const failuresToSplit = 3;

/** Consecutive failures by block. Entries of blocks that are no longer polled are never read. */
export class FailureRuns {
  readonly #runs = new WeakMap<object, number>();

  /** Adds a failure. Returns the number of consecutive ones. */
  add(block: object): number {
    const failures = (this.#runs.get(block) ?? 0) + 1;
    this.#runs.set(block, failures);
    return failures;
  }

  end(block: object): void {
    this.#runs.delete(block);
  }
}

/** Whether to search for the cause in the block, which costs requests: after 3, 6, 12, 24 … failures. */
export function isTimeToSplit(failures: number): boolean {
  return failures >= failuresToSplit && Number.isInteger(Math.log2(failures / failuresToSplit));
}

// Learns which lengths a unit answers while a silent block is split. Pure.

/** Number of silent blocks, none longer than the block in question, that show that the length is the cause. */
const silentToBeTooLong = 2;
/** Consecutive silences after which the unit may be gone. */
const silentToBeGone = 3;

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

  /** Whether a block of `count` need not be requested, as the unit would be silent. */
  isTooLong(count: number): boolean {
    if (count <= this.#longestAnswered) return false;
    return this.#silent.filter((length) => length <= count).length >= silentToBeTooLong;
  }

  get mayBeGone(): boolean {
    return this.#silentInARow >= silentToBeGone;
  }

  unitAnswered(): void {
    this.#silentInARow = 0;
  }
}
