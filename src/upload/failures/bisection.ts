// Finds the points that cause a refusal, so that all others are delivered. A breaker stops the search when the service or
// the configuration is at fault.
import type { InputId } from "../../core/point.ts";
import { SubBatch, type SubBatchColumn } from "../window/sub-batch.ts";

interface Suspect {
  subBatch: SubBatch;
  /** The other half, while undecided. */
  readonly sibling?: Suspect;
  /** The service refused it, or accepted the other half of a refused sub-batch. */
  guilty: boolean;
}

/**
 * Finds the points that cause a refusal. Each step takes at most two requests. If one half is accepted, the other is
 * split without being sent as a whole. If one half is refused, the other is sent before the refused one is split, so that
 * good points do not wait for the search among bad ones. Halves with points of one input keep their order.
 */
export class Bisection {
  /** A stack: the last suspect is next. */
  readonly #suspects: Suspect[] = [];
  readonly #isDoubtful: (input: InputId) => boolean;
  #points = 0;

  /** `isDoubtful`: whether the last decided point of the input was refused. Its points are split off first. */
  constructor(isDoubtful: (input: InputId) => boolean = () => false) {
    this.#isDoubtful = isDoubtful;
  }

  /** Undecided points outside the window. */
  get points(): number {
    return this.#points;
  }

  get empty(): boolean {
    return this.#suspects.length === 0;
  }

  /** Inputs of undecided points. */
  inputs(): ReadonlySet<InputId> {
    return new Set(this.#suspects.flatMap(({ subBatch }) => subBatch.columns.map(({ input }) => input)));
  }

  /**
   * Adds refused points. `named`: the inputs that the service blamed, if any. `isLast`: after what is searched already, which
   * would otherwise begin again with each refused frame.
   */
  add(subBatch: SubBatch, named: readonly InputId[], isLast = false): void {
    this.#points += subBatch.points;
    const before = isLast ? this.#suspects.splice(0) : [];
    this.#suspects.push({ subBatch, guilty: true });
    this.#divideOff(named);
    this.#suspects.push(...before);
  }

  /** Schedules unsuspicious points to be sent first. */
  resend(columns: readonly SubBatchColumn[]): void {
    if (columns.length === 0) return;
    const subBatch = new SubBatch(columns);
    this.#points += subBatch.points;
    this.#suspects.push({ subBatch, guilty: false });
  }

  /** Removes all points of `input`. The caller decides about them. */
  withdraw(input: InputId): SubBatchColumn[] {
    const withdrawn: SubBatchColumn[] = [];
    for (let at = this.#suspects.length - 1; at >= 0; at--) {
      const suspect = this.#suspects[at]!;
      const left = suspect.subBatch.columns.filter((column) => column.input !== input);
      if (left.length === suspect.subBatch.columns.length) continue;
      for (const column of suspect.subBatch.columns) if (column.input === input) withdrawn.push(column);
      if (left.length === 0) this.#suspects.splice(at, 1);
      else {
        suspect.subBatch = new SubBatch(left);
        suspect.guilty &&= left.some((column) => this.#isDoubtful(column.input));
      }
    }
    for (const { count } of withdrawn) this.#points -= count;
    return withdrawn;
  }

  /** The next sub-batch to send. Stays the same until it is accepted, refused or split. */
  next(): SubBatch | undefined {
    for (;;) {
      const suspect = this.#suspects.at(-1);
      // A sub-batch known to be refused is split. A single point is always sent by itself.
      if (!suspect?.guilty) return suspect?.subBatch;
      if (!this.#divide(this.#isDoubtful) && !this.#push(suspect.subBatch.halves())) return suspect.subBatch;
    }
  }

  accepted(): void {
    const suspect = this.#suspects.pop();
    if (!suspect) return;
    this.#points -= suspect.subBatch.points;
    if (suspect.sibling) suspect.sibling.guilty = true;
  }

  /** The sub-batch of `next` was refused. Returns it if it is a single point, which ends its search. */
  refused(named: readonly InputId[]): SubBatch | undefined {
    const suspect = this.#suspects.at(-1);
    if (!suspect) return undefined;
    if (suspect.subBatch.points === 1) {
      this.#suspects.pop();
      this.#points--;
      return suspect.subBatch;
    }
    suspect.guilty = true;
    const { sibling, subBatch } = suspect;
    if (this.#divideOff(named) || !sibling || sibling !== this.#suspects.at(-2)) return undefined;
    // Points of one input keep their order.
    if (sibling.subBatch.columns[0]?.input !== subBatch.columns[0]?.input)
      this.#suspects.splice(-2, 2, suspect, sibling);
    return undefined;
  }

  /** The service failed on the sub-batch of `next`: others go first. Points of one input keep their order. */
  postpone(): void {
    const inputs = new Set<InputId>();
    const behind: Suspect[] = [];
    const others: Suspect[] = [];
    // The other points of refused frames need not wait with doubtful ones.
    for (const suspect of this.#suspects.splice(0)) {
      this.#suspects.push(suspect);
      if (suspect.guilty) this.#divide(this.#isDoubtful);
    }
    const isDoubtful = ({ subBatch }: Suspect) => subBatch.columns.every(({ input }) => this.#isDoubtful(input));
    const areSome = !this.#suspects.every(isDoubtful);
    for (const suspect of this.#suspects.splice(0).toReversed()) {
      const { columns } = suspect.subBatch;
      const isBehind = behind.length === 0 || (areSome && isDoubtful(suspect));
      if (!isBehind && !columns.some(({ input }) => inputs.has(input))) {
        others.unshift(suspect);
        continue;
      }
      for (const { input } of columns) inputs.add(input);
      behind.unshift(suspect);
    }
    this.#suspects.push(...behind, ...others);
  }

  /** The sub-batch of `next` exceeds the request size. */
  split(): void {
    const suspect = this.#suspects.pop();
    const halves = suspect?.subBatch.halves();
    if (halves) for (const subBatch of [halves[1], halves[0]]) this.#suspects.push({ subBatch, guilty: false });
    else if (suspect) this.#suspects.push(suspect);
  }

  #divideOff(named: readonly InputId[]): boolean {
    const inputs = new Set(named);
    return this.#divide((input) => inputs.has(input));
  }

  /** Splits the next suspect into the points of some inputs and the others, which are sent first. */
  #divide(isChosen: (input: InputId) => boolean): boolean {
    return this.#push(this.#suspects.at(-1)?.subBatch.divide(isChosen));
  }

  /** Replaces the next suspect by two parts. Returns whether there are any. */
  #push(parts: readonly [sooner: SubBatch, later: SubBatch] | undefined): boolean {
    if (!parts) return false;
    const sibling = { subBatch: parts[1], guilty: false };
    this.#suspects.splice(-1, 1, sibling, { subBatch: parts[0], guilty: false, sibling });
    return true;
  }
}

/** More than the refusals in a row needed to find one bad point in a frame of any size. */
const mostInARow = 25;
const sampleSize = 100_000;
const mostShare = 0.01;

/**
 * Prevents a faulty service or configuration from turning a backlog into rejects. Opens if the service refuses every
 * request, or more than 1 % of the last 100,000 points.
 */
export class Breaker {
  #inARow = 0;
  #sent = 0;
  #refused = 0;

  get open(): boolean {
    return this.#inARow >= mostInARow || this.#refused > sampleSize * mostShare;
  }

  get cause(): string {
    return this.#inARow >= mostInARow
      ? `${this.#inARow} requests in a row are refused`
      : `${mostShare * 100} % of the last points or more are refused`;
  }

  accepted(points: number): void {
    this.#inARow = 0;
    this.#sent += points;
    // Removes half a sample at a time, so the count covers between half and a whole sample.
    while (this.#sent > sampleSize) {
      this.#sent -= sampleSize / 2;
      this.#refused >>= 1;
    }
  }

  refused(): void {
    this.#inARow++;
  }

  rejected(points: number): void {
    this.#refused += points;
    this.#sent += points;
  }
}
