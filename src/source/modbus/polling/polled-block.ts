// What the requests for a block have shown, and which lengths a unit answers. Pure.
import { split } from "../config/plan.ts";
import type { TagBlock } from "./unit-reader.ts";

/** A refused block is not requested for one minute, doubled with each refusal, up to an hour. */
const shortestRestMs = 60_000;
const longestRestMs = 3_600_000;
/** Some devices are silent or fail if a request is too long. After this many failures, halves are tried. */
export const failuresToSplit = 3;

/** Times are monotonic milliseconds. */
export class PolledBlock {
  readonly block: TagBlock;
  hasGivenData = false;
  /** Silences in a row. */
  silences = 0;
  /** Exceptions in a row that do not depend on the address. */
  faults = 0;
  #halves: readonly PolledBlock[] | undefined;
  #rest: { readonly until: number; readonly ms: number; readonly reason: string } | undefined;

  constructor(block: TagBlock) {
    this.block = block;
  }

  /** The parts to request instead. Empty if the block has a single place. */
  get halves(): readonly PolledBlock[] {
    return (this.#halves ??= (split(this.block) ?? []).map((half) => new PolledBlock(half)));
  }

  /** Why the block must not be requested now. Undefined if it may be. */
  refusal(now: number): string | undefined {
    return this.#rest && now < this.#rest.until ? this.#rest.reason : undefined;
  }

  /** `forLong`: for the longest time at once. True for the first refusal. */
  refuse(reason: string, forLong: boolean, now: number): boolean {
    const before = this.#rest?.ms;
    const ms = forLong ? longestRestMs : Math.min(before === undefined ? shortestRestMs : before * 2, longestRestMs);
    this.#rest = { until: now + ms, ms, reason };
    return before === undefined;
  }

  answered(): void {
    this.hasGivenData = true;
    this.silences = 0;
    this.faults = 0;
    this.#rest = undefined;
  }
}

/** Whether to search for the cause in the block, which costs requests: after 3, 6, 12, 24 … failures. */
export function isTimeToSplit(failures: number): boolean {
  return failures >= failuresToSplit && Number.isInteger(Math.log2(failures / failuresToSplit));
}

/** Number of silent blocks, none longer than the block in question, that show that the length is the cause. */
const silentToBeTooLong = 2;
/** Consecutive silences after which the unit may be gone. */
const silentToBeGone = 3;

/** Learns which lengths a unit answers while a silent block is split. */
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
