// Parked inputs: the service does not accept their points at present. The points stay in the buffer, and each input is
// retried on its own schedule. Other inputs are not affected.
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/flow/repeat.ts";

/** `refused`: error −32021 names the input. `unconfirmed`: answers do not name it. */
export type ParkReason = "refused" | "unconfirmed";

export interface ParkedInput {
  readonly input: InputId;
  readonly why: ParkReason;
  /** Reason given by the service, for people. */
  readonly reason: string;
  readonly since: EpochMicros;
  /** Milliseconds until the next retry. */
  readonly retryInMs: number;
}

export interface ParkedStatus {
  readonly refused: number;
  readonly unconfirmed: number;
  /** The 20 inputs that were parked first. */
  readonly first: readonly ParkedInput[];
}

interface Entry {
  readonly why: ParkReason;
  reason: string;
  readonly since: EpochMicros;
  readonly backOff: BackOff;
  /** In monotonic milliseconds. */
  nextTryAt: number;
  tries: number;
  /** Bisection decides on its oldest points. After that it is no longer parked. */
  draining: boolean;
}

/** A missing permission is corrected within minutes; a service that does not confirm inputs needs an operator. */
const schedules = {
  refused: { minMs: 5_000, maxMs: 300_000 },
  unconfirmed: { minMs: 60_000, maxMs: 3_600_000 },
} as const;
/** Limits the state that the buffer keeps for parked inputs in each segment. */
const mostParked = 1_000;
/** Answers in a row that may omit an input before it is parked. */
const mostUnnamed = 3;
const mostShown = 20;
/** Retries that each accepted input advances. If a common cause is gone, the number doubles with each request. */
const hurriedByEach = 2;
/** Pause after a failed retry, so that other inputs get four of five requests. */
const restMs = 5_000;
/** Points of an input that may be rejected in a row before one must be accepted. */
const mostRejectsInARow = 8;

export type ParkedInputs = ReturnType<typeof parkedInputs>;

export function parkedInputs(runtime: Runtime) {
  const entries = new Map<InputId, Entry>();
  /** Input → number of answers in a row that omitted it. */
  const unnamed = new Map<InputId, number>();
  /** Input accepted again after a refusal → number of single points that may be rejected. */
  const proven = new Map<InputId, number>();
  /** No retry before this, in monotonic milliseconds. */
  let restUntil = Number.NEGATIVE_INFINITY;
  let excepted: readonly InputId[] | undefined;

  function delay(input: InputId, reason: string | undefined, failed: boolean): void {
    const entry = entries.get(input);
    if (!entry) return;
    if (failed) entry.tries++;
    if (reason !== undefined) entry.reason = reason;
    const waitMs = failed ? entry.backOff.next() : schedules[entry.why].minMs;
    entry.nextTryAt = runtime.clock.monotonic() + waitMs;
  }

  /** Returns whether the input was not parked before. Otherwise its schedule continues. */
  function park(input: InputId, why: ParkReason, reason: string): boolean {
    unnamed.delete(input);
    proven.delete(input);
    const known = entries.get(input);
    if (known) {
      known.reason = reason;
      known.draining = false;
      return false;
    }
    const { clock, random } = runtime;
    const backOff = new BackOff({ ...schedules[why], random });
    const nextTryAt = clock.monotonic() + backOff.next();
    entries.set(input, { why, reason, since: clock.now(), backOff, nextTryAt, tries: 0, draining: false });
    excepted = undefined;
    return true;
  }

  return {
    park,
    /** Inputs not to lease from the buffer. Undefined: none. */
    get except(): readonly InputId[] | undefined {
      return (excepted ??= entries.size > 0 ? [...entries.keys()] : undefined);
    },
    has: (input: InputId): boolean => entries.has(input),
    /** Why the service does not accept the input, for people. Undefined: it is not parked. */
    reasonOf: (input: InputId): string | undefined => entries.get(input)?.reason,
    /** Makes inputs due, since an operator expects that the service accepts them again. */
    hurry(inputs: Iterable<InputId>): void {
      const now = runtime.clock.monotonic();
      for (const input of inputs) {
        const entry = entries.get(input);
        if (entry && !entry.draining) entry.nextTryAt = Math.min(entry.nextTryAt, now);
      }
    },
    /** Whether so many inputs are parked that the service must be the cause. */
    get isFull(): boolean {
      return entries.size >= mostParked;
    },
    /** A retry failed. */
    triedInVain(input: InputId, reason: string): void {
      delay(input, reason, true);
      restUntil = runtime.clock.monotonic() + restMs;
    },
    /** The buffer had no points for a retry. */
    postpone(input: InputId): void {
      delay(input, undefined, false);
    },
    /** Bisection decides on the input's oldest points. No others are leased until `join`. */
    drain(input: InputId, reason: string): void {
      park(input, "refused", reason);
      const entry = entries.get(input);
      if (entry) entry.draining = true;
      proven.set(input, mostRejectsInARow);
    },
    /** Inputs that are waiting for bisection. */
    draining: (): Iterable<InputId> => entries.entries().flatMap(([input, { draining }]) => (draining ? [input] : [])),
    /** The service accepts the input again. Advances two others, which often have the same cause. */
    join(input: InputId): void {
      const entry = entries.get(input);
      if (!entry) return;
      entries.delete(input);
      excepted = undefined;
      const now = runtime.clock.monotonic();
      restUntil = now;
      const others = [...entries.values()]
        .filter(({ why, nextTryAt, draining }) => why === entry.why && nextTryAt > now && !draining)
        .toSorted((a, b) => a.nextTryAt - b.nextTryAt);
      for (const other of others.slice(0, hurriedByEach)) other.nextTryAt = now;
      runtime.log.info({ input }, "the service takes an input again");
    },
    /** Up to `most` inputs that are due, longest first. */
    due(most: number): InputId[] {
      const now = runtime.clock.monotonic();
      if (now < restUntil) return [];
      return [...entries]
        .filter(([, { nextTryAt, draining }]) => !draining && nextTryAt <= now)
        .toSorted(([, a], [, b]) => a.nextTryAt - b.nextTryAt)
        .slice(0, most)
        .map(([input]) => input);
    },
    /** Milliseconds until the next retry. Undefined: none. */
    get dueInMs(): number | undefined {
      let at = Number.POSITIVE_INFINITY;
      for (const { nextTryAt, draining } of entries.values()) if (!draining) at = Math.min(at, nextTryAt);
      if (at === Number.POSITIVE_INFINITY) return undefined;
      return Math.max(0, Math.max(at, restUntil) - runtime.clock.monotonic());
    },
    tries: (input: InputId): number => entries.get(input)?.tries ?? 0,
    /** An answer confirmed the input. */
    named(input: InputId): void {
      // Usually both are empty, and each input of each request comes here.
      if (unnamed.size > 0) unnamed.delete(input);
      if (proven.size > 0 && proven.has(input)) proven.set(input, mostRejectsInARow);
    },
    /** An answer omitted the input. Returns whether it should be parked. */
    leftOut(input: InputId): boolean {
      const times = (unnamed.get(input) ?? 0) + 1;
      unnamed.set(input, times);
      return times >= mostUnnamed;
    },
    /** Whether the last answer omitted the input. */
    wasLeftOut: (input: InputId): boolean => unnamed.has(input),
    isProven: (input: InputId): boolean => (proven.get(input) ?? 0) > 0,
    /** A single point of the input was rejected. */
    rejected(input: InputId): void {
      proven.set(input, (proven.get(input) ?? 0) - 1);
    },
    status(): ParkedStatus {
      const now = runtime.clock.monotonic();
      let refused = 0;
      for (const { why } of entries.values()) if (why === "refused") refused++;
      const first = [...entries.entries().take(mostShown)].map(([input, { why, reason, since, nextTryAt }]) => ({
        input,
        why,
        reason,
        since,
        retryInMs: Math.max(0, Math.round(nextTryAt - now)),
      }));
      return { refused, unconfirmed: entries.size - refused, first };
    },
  };
}
