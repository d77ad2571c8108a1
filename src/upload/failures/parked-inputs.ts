// Parked inputs: the service does not accept their points at present. The points wait, and each input is retried on its
// own schedule. Other inputs are not affected.
//
//   parked        points return to the buffer
//   draining      a retry was accepted in part: bisection decides on its points
//   distrusted    parked after several rejected points in a row: points that were leased are kept for retries
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import type { SubBatchColumn } from "../window/sub-batch.ts";

/**
 * `refused`: the service names the input in error −32021, refuses its points one after the other, or fails on them.
 * `unconfirmed`: answers omit it.
 */
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
  /** Bisection decides on some of its points. After that it is no longer parked, unless it is distrusted. */
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
/** The same where the service names no input. Two bad values in a row are common; each search for one delays others. */
const mostUnnamedRejects = 3;
/** Points of distrusted inputs that are kept in memory, at 25 bytes each. */
const mostKept = 100_000;
/**
 * Pause after the search among points of a distrusted input, as a multiple of its duration. Every second request belongs
 * to the search.
 */
const restShare = 3;

export type ParkedInputs = ReturnType<typeof parkedInputs>;

export function parkedInputs(runtime: Runtime) {
  const entries = new Map<InputId, Entry>();
  /** Input → number of answers in a row that omitted it. */
  const unnamed = new Map<InputId, number>();
  /** Input accepted again after a refusal → number of single points that may be rejected. */
  const proven = new Map<InputId, number>();
  /**
   * Input → number of its points that were rejected since one was accepted, in answers that name no input, and `accepts`
   * at the first of them.
   */
  const doubtful = new Map<InputId, { rejects: number; readonly accepts: number }>();
  /** Number of times that an answer accepted an input. */
  let accepts = 0;
  /** Points of distrusted inputs. A block returns to the buffer with its rejected points, which would be sent again. */
  const kept = new Map<InputId, SubBatchColumn>();
  /** No retry before this, in monotonic milliseconds. */
  let restUntil = Number.NEGATIVE_INFINITY;
  /** As `restUntil`, for distrusted inputs. */
  let aloneUntil = Number.NEGATIVE_INFINITY;
  /** When the last search among points of a parked input began, in monotonic milliseconds. */
  let searchedSince = Number.NEGATIVE_INFINITY;
  let excepted: readonly InputId[] | undefined;

  const rejectsOf = (input: InputId) => doubtful.get(input)?.rejects ?? 0;
  const isDistrusted = (input: InputId) => rejectsOf(input) >= mostUnnamedRejects;

  function join(input: InputId): void {
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
  }

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
    /** Bisection decides on points of the input. No others are leased until `join` or `drained`. */
    drain(input: InputId, reason: string): void {
      park(input, "refused", reason);
      const entry = entries.get(input);
      if (entry) entry.draining = true;
      searchedSince = runtime.clock.monotonic();
      proven.set(input, mostRejectsInARow);
    },
    /** Inputs that are waiting for bisection. */
    draining: (): Iterable<InputId> => entries.entries().flatMap(([input, { draining }]) => (draining ? [input] : [])),
    /** The service accepts the input again. Advances two others, which often have the same cause. */
    join,
    /** Bisection has decided on its points of the input, which stays parked if it is distrusted now. */
    drained(input: InputId): void {
      const entry = entries.get(input);
      if (!entry || !isDistrusted(input)) return join(input);
      entry.draining = false;
      const now = runtime.clock.monotonic();
      aloneUntil = now + Math.min(schedules.refused.maxMs, (now - searchedSince) * restShare);
      delay(input, undefined, true);
    },
    /** Up to `most` inputs that are due, longest first. A distrusted input comes alone. */
    due(most: number): InputId[] {
      const now = runtime.clock.monotonic();
      if (now < restUntil) return [];
      const isSearched = entries.entries().some(([input, { draining }]) => draining && isDistrusted(input));
      const due = [...entries]
        .filter(([, { nextTryAt, draining }]) => !draining && nextTryAt <= now)
        .filter(([input]) => !isDistrusted(input) || (!isSearched && now >= aloneUntil))
        .toSorted(([, a], [, b]) => a.nextTryAt - b.nextTryAt)
        .map(([input]) => input);
      const [first] = due;
      if (first !== undefined && isDistrusted(first)) return [first];
      return due.filter((input) => !isDistrusted(input)).slice(0, most);
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
      if (doubtful.size > 0) doubtful.delete(input);
      accepts++;
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
    /** The same, by an answer that does not name the input. Returns whether the input should be parked. */
    rejectedUnnamed(input: InputId): boolean {
      doubtful.set(input, { accepts, ...doubtful.get(input), rejects: rejectsOf(input) + 1 });
      return isDistrusted(input) && !entries.has(input);
    },
    /** Whether a point of the input was rejected, by an answer that does not name it, and none accepted since. */
    isDoubtful: (input: InputId): boolean => doubtful.has(input),
    /** Whether points of the input wait while older ones are searched, since two or more were rejected in a row. */
    waits: (input: InputId): boolean => rejectsOf(input) > 1,
    /** Keeps points of distrusted inputs for their retries, instead of those that are kept already. */
    keep(columns: readonly SubBatchColumn[]): void {
      for (const column of columns) kept.set(column.input, column);
    },
    /** Takes the first `most` points that are kept. */
    takeKept(input: InputId, most = Number.POSITIVE_INFINITY): SubBatchColumn[] {
      const column = kept.get(input);
      if (!column) return [];
      if (column.count > most) kept.set(input, column.part(most, column.count));
      else kept.delete(input);
      return [column.part(0, most)];
    },
    /** Takes all points that are kept if they are too many, or if `holdsBack` is true for those of an input. */
    takeAllKept(holdsBack: (column: SubBatchColumn) => boolean): SubBatchColumn[] {
      const columns = [...kept.values()];
      const points = columns.reduce((sum, { count }) => sum + count, 0);
      if (points <= mostKept && !columns.some(holdsBack)) return [];
      kept.clear();
      return columns;
    },
    /** Whether so many of its points were rejected in a row that the next ones probably will be, too. */
    isDistrusted,
    /** Whether the input is distrusted, and others were accepted meanwhile, so that the service is not the cause. */
    isAtFault: (input: InputId): boolean => isDistrusted(input) && accepts > (doubtful.get(input)?.accepts ?? accepts),
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
