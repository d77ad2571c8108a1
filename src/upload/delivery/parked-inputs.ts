// Inputs whose points the service does not take now. Their points stay in the buffer, all other inputs go on, and each of
// them is retried on a schedule of its own.
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/back-off.ts";

/** `refused`: −32021 names the input. `unconfirmed`: answers to requests that carry it do not name it. */
export type ParkReason = "refused" | "unconfirmed";

export interface ParkedInput {
  readonly input: InputId;
  readonly why: ParkReason;
  /** In the words of the service, for people. */
  readonly reason: string;
  readonly since: EpochMicros;
  /** Milliseconds until the next try. */
  readonly retryInMs: number;
}

export interface ParkedStatus {
  readonly refused: number;
  readonly unconfirmed: number;
  /** The 20 parked first. */
  readonly first: readonly ParkedInput[];
}

interface Entry {
  readonly why: ParkReason;
  reason: string;
  readonly since: EpochMicros;
  readonly backOff: BackOff;
  /** On the monotonic clock in milliseconds. */
  nextTryAt: number;
  tries: number;
  /** Bisection decides about its oldest points; then it joins again. */
  draining: boolean;
}

/** The service may have been told of a missing permission, which takes minutes; or does not name inputs, which takes a person. */
const schedules = {
  refused: { minMs: 5_000, maxMs: 300_000 },
  unconfirmed: { minMs: 60_000, maxMs: 3_600_000 },
} as const;
/** What the buffer remembers of parked inputs in each segment is small while they are few. */
const mostParked = 1_000;
/** Answers in a row that may leave out an input before it is parked. */
const mostUnnamed = 3;
const mostShown = 20;
/** Inputs that are tried at once for each that is taken again: where the cause is gone for all, each request doubles them. */
const hurriedByEach = 2;
/** Pause between retries after a failed one. However many inputs are parked, other inputs get four of five requests. */
const restMs = 5_000;
/** Points that may go to the rejects in a row before another point of the same input has to be accepted. */
const mostRejectsInARow = 8;

export class ParkedInputs {
  readonly #runtime: Runtime;
  readonly #entries = new Map<InputId, Entry>();
  /** How many answers in a row left out an input. */
  readonly #unnamed = new Map<InputId, number>();
  /** Inputs of which the service took a point since it refused the input: how many single points may be rejected. */
  readonly #proven = new Map<InputId, number>();
  #except: readonly InputId[] | undefined;
  /** No retry before this, on the monotonic clock in milliseconds. */
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** What is not to be taken from the buffer; undefined: all may be. */
  get except(): readonly InputId[] | undefined {
    return (this.#except ??= this.#entries.size > 0 ? [...this.#entries.keys()] : undefined);
  }

  has(input: InputId): boolean {
    return this.#entries.has(input);
  }

  /** So many are parked that the service, not single inputs, is at fault. */
  get isFull(): boolean {
    return this.#entries.size >= mostParked;
  }

  /** Says whether it was not parked before. The schedule of one that is goes on. */
  park(input: InputId, why: ParkReason, reason: string): boolean {
    this.#unnamed.delete(input);
    this.#proven.delete(input);
    const known = this.#entries.get(input);
    if (known) {
      known.reason = reason;
      known.draining = false;
      return false;
    }
    const { clock, random } = this.#runtime;
    const backOff = new BackOff({ ...schedules[why], random });
    const nextTryAt = clock.monotonic() + backOff.next();
    this.#entries.set(input, { why, reason, since: clock.now(), backOff, nextTryAt, tries: 0, draining: false });
    this.#except = undefined;
    return true;
  }

  /** A retry of it was refused, or not confirmed. */
  triedInVain(input: InputId, reason: string): void {
    this.#postpone(input, reason, true);
    this.#restUntil = this.#runtime.clock.monotonic() + restMs;
  }

  /** There was nothing to try it with. */
  postpone(input: InputId): void {
    this.#postpone(input, undefined, false);
  }

  /** Bisection decides about the oldest points of it; until `join` no others are taken. */
  drain(input: InputId, reason: string): void {
    this.park(input, "refused", reason);
    const entry = this.#entries.get(input);
    if (entry) entry.draining = true;
    this.#proven.set(input, mostRejectsInARow);
  }

  /** Those of which bisection may have decided. */
  *draining(): Generator<InputId> {
    for (const [input, { draining }] of this.#entries) if (draining) yield input;
  }

  /** The service takes it again. Two others that it would not take are tried at once: they often have the same cause. */
  join(input: InputId): void {
    const entry = this.#entries.get(input);
    if (!entry) return;
    this.#entries.delete(input);
    this.#except = undefined;
    const now = this.#runtime.clock.monotonic();
    this.#restUntil = now;
    const others = [...this.#entries.values()]
      .filter(({ why, nextTryAt, draining }) => why === entry.why && nextTryAt > now && !draining)
      .toSorted((a, b) => a.nextTryAt - b.nextTryAt);
    for (const other of others.slice(0, hurriedByEach)) other.nextTryAt = now;
    this.#runtime.log.info({ input }, "the service takes an input again");
  }

  /** At most `most` whose next try is due, the longest due first. */
  due(most: number): InputId[] {
    const now = this.#runtime.clock.monotonic();
    if (now < this.#restUntil) return [];
    return [...this.#entries]
      .filter(([, { nextTryAt, draining }]) => !draining && nextTryAt <= now)
      .toSorted(([, a], [, b]) => a.nextTryAt - b.nextTryAt)
      .slice(0, most)
      .map(([input]) => input);
  }

  /** Milliseconds until one is due; undefined: none will be. */
  get dueInMs(): number | undefined {
    let at = Number.POSITIVE_INFINITY;
    for (const { nextTryAt, draining } of this.#entries.values()) if (!draining) at = Math.min(at, nextTryAt);
    if (at === Number.POSITIVE_INFINITY) return undefined;
    return Math.max(0, Math.max(at, this.#restUntil) - this.#runtime.clock.monotonic());
  }

  tries(input: InputId): number {
    return this.#entries.get(input)?.tries ?? 0;
  }

  /** An answer names it as stored. */
  named(input: InputId): void {
    this.#unnamed.delete(input);
    if (this.#proven.has(input)) this.#proven.set(input, mostRejectsInARow);
  }

  /** An answer leaves it out. Says whether that was once too often. */
  leftOut(input: InputId): boolean {
    const times = (this.#unnamed.get(input) ?? 0) + 1;
    this.#unnamed.set(input, times);
    return times >= mostUnnamed;
  }

  /** The last answer left it out. */
  wasLeftOut(input: InputId): boolean {
    return this.#unnamed.has(input);
  }

  isProven(input: InputId): boolean {
    return (this.#proven.get(input) ?? 0) > 0;
  }

  /** A single point of it is refused for good. */
  rejected(input: InputId): void {
    this.#proven.set(input, (this.#proven.get(input) ?? 0) - 1);
  }

  status(): ParkedStatus {
    const now = this.#runtime.clock.monotonic();
    let refused = 0;
    for (const { why } of this.#entries.values()) if (why === "refused") refused++;
    const first = [...this.#entries.entries().take(mostShown)].map(([input, { why, reason, since, nextTryAt }]) => ({
      input,
      why,
      reason,
      since,
      retryInMs: Math.max(0, Math.round(nextTryAt - now)),
    }));
    return { refused, unconfirmed: this.#entries.size - refused, first };
  }

  #postpone(input: InputId, reason: string | undefined, failed: boolean): void {
    const entry = this.#entries.get(input);
    if (!entry) return;
    if (failed) entry.tries++;
    if (reason !== undefined) entry.reason = reason;
    const waitMs = failed ? entry.backOff.next() : schedules[entry.why].minMs;
    entry.nextTryAt = this.#runtime.clock.monotonic() + waitMs;
  }
}
