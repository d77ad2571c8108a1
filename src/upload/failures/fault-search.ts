// Finds what the service refuses or fails on, so that everything else can be delivered: points by bisection, series by
// sending some of them apart. A breaker stops both when the service or the configuration is at fault.
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { QueueColumns } from "../packing/frame.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
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
 * split without being sent as a whole.
 */
export class Bisection {
  /** A stack: the last suspect is next. */
  readonly #suspects: Suspect[] = [];
  #points = 0;

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
    const divided = subBatch.divide(new Set(named));
    if (divided) this.#push(divided[0], divided[1]);
    else this.#suspects.push({ subBatch, guilty: true });
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
      else suspect.subBatch = new SubBatch(left);
    }
    for (const { count } of withdrawn) this.#points -= count;
    return withdrawn;
  }

  /** The next sub-batch to send. Stays the same until it is accepted, refused or split. */
  next(): SubBatch | undefined {
    for (;;) {
      const suspect = this.#suspects.at(-1);
      if (!suspect) return undefined;
      const halves = suspect.guilty ? suspect.subBatch.halves() : undefined;
      // A sub-batch known to be refused is split. A single point is always sent by itself.
      if (!halves) return suspect.subBatch;
      this.#suspects.pop();
      this.#push(halves[1], halves[0]);
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
    const divided = suspect.subBatch.divide(new Set(named));
    suspect.guilty = true;
    if (divided) {
      this.#suspects.pop();
      this.#push(divided[0], divided[1]);
    }
    return undefined;
  }

  /** The service failed on the sub-batch of `next`: others go first. Points of one input keep their order. */
  postpone(): void {
    const inputs = new Set<InputId>();
    const behind: Suspect[] = [];
    const others: Suspect[] = [];
    for (const suspect of this.#suspects.splice(0).toReversed()) {
      const { columns } = suspect.subBatch;
      if (behind.length > 0 && !columns.some(({ input }) => inputs.has(input))) {
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

  #push(later: SubBatch, sooner: SubBatch): void {
    const sibling = { subBatch: later, guilty: false };
    this.#suspects.push(sibling, { subBatch: sooner, guilty: false, sibling });
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

// Finds the series on which the service fails, if every request with them gets a server error.
//
// All points stay in the window. After one request has failed for a while, its series become suspects. Requests with
// some of them then alternate with requests of all other series:
//
//   nothing is accepted    one suspect a request, a different one each time: harmless if the service is down
//   first acceptance       all suspects at once: if the service was down, this succeeds
//   then                   half as many after a failure, twice as many after an acceptance
//   one fails by itself    shortly after another request was accepted: its input is at fault

/** Consecutive failures and duration before the series of a request become suspects. */
const leastFailures = 5;
const leastMs = 30_000;
/** After this many failures in a row, the service may be down. Enough to find one series in a million. */
export const mostFailures = 32;

export class FailureSearch {
  readonly #clock: Clock;
  /** Consecutive failures of one request, and the monotonic time of the first in milliseconds. */
  #failures = 0;
  #since = 0;
  /** Suspect → its points in the failed request that are not accepted yet. */
  readonly #suspects = new Map<SeriesQueue, number>();
  #size = 1;
  #isTrial = false;
  /** Whether a request was accepted since the search began. */
  #isAnswering = false;
  /** Failures since the last acceptance. */
  #vain = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#suspects.size > 0;
  }

  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Filter for the series of the next request. Undefined: all series. */
  next(): ((queue: SeriesQueue) => boolean) | undefined {
    for (const queue of this.#suspects.keys()) if (queue.count === 0) this.#suspects.delete(queue);
    if (!this.isOn) return undefined;
    this.#isTrial = !this.#isTrial;
    if (!this.#isTrial) return (queue) => !this.#suspects.has(queue);
    const some = new Set(this.#suspects.keys().take(this.#size));
    return (queue) => some.has(queue);
  }

  /** The service answered a request with a server error. `blamed`: the input at fault. */
  failed(parts: QueueColumns): { readonly isSearched: boolean; readonly blamed?: InputId } {
    if (!this.isOn) {
      const now = this.#clock.monotonic();
      if (this.#failures++ === 0) this.#since = now;
      if (this.#failures < leastFailures || now - this.#since < leastMs) return { isSearched: false };
      this.#suspect(parts);
      this.#size = 1;
      this.#isTrial = false;
      this.#isAnswering = false;
      return { isSearched: true };
    }
    const mayBlame = this.#isAnswering && ++this.#vain <= mostFailures;
    const [first] = parts.sources;
    if (!this.#isTrial) this.#suspect(parts);
    else if (this.#size > 1) this.#size = Math.max(1, Math.min(this.#size, this.#suspects.size) >> 1);
    else if (first) {
      const left = this.#suspects.get(first) ?? 0;
      this.#suspects.delete(first);
      if (mayBlame) return { isSearched: true, blamed: first.input };
      // Moves it to the end.
      this.#suspects.set(first, left);
    }
    return { isSearched: true };
  }

  /** The service accepted these parts, or points outside the window (undefined). */
  accepted(parts: QueueColumns | undefined): void {
    this.#failures = 0;
    this.#vain = 0;
    if (!this.isOn) return;
    for (const { source: queue, count } of parts ?? []) {
      const left = this.#suspects.get(queue);
      if (left === undefined) continue;
      if (left > count) this.#suspects.set(queue, left - count);
      else this.#suspects.delete(queue);
    }
    if (!this.#isAnswering) this.#size = this.#suspects.size;
    else if (this.#isTrial && parts && parts.length > 0) this.#size *= 2;
    this.#isAnswering = true;
  }

  #suspect(parts: QueueColumns): void {
    for (const { source, count } of parts) this.#suspects.set(source, count);
  }
}
