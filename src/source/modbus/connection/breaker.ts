// A circuit breaker: polls a unit that does not answer rarely, so that it does not delay others.
import type { Clock } from "../../../core/runtime.ts";
import { BackOff } from "../../../lib/flow/repeat.ts";

/** Consecutive failures after which a unit counts as down. */
const failureLimit = 3;
const probeMinMs = 5_000;
const probeMaxMs = 60_000;

/** All probes of a link together take at most 1/40 of its time. */
const probeShare = 40;

/** Limits the probes of units that are down; shared by the breakers of a link. */
export type ProbeBudget = ReturnType<typeof probeBudget>;

export function probeBudget(clock: Clock) {
  let probing = false;
  let notBefore = Number.NEGATIVE_INFINITY;

  return {
    /** Whether a probe may be sent now. If so, call `giveBack` after it. */
    take(): boolean {
      if (probing || clock.monotonic() < notBefore) return false;
      probing = true;
      return true;
    },
    /** Ends a probe. `ms`: its duration if it failed, else 0. */
    giveBack(ms: number): void {
      probing = false;
      notBefore = clock.monotonic() + ms * (probeShare - 1);
    },
  };
}

/** The breaker of one unit, shared by all its polls. */
export type UnitBreaker = ReturnType<typeof unitBreaker>;

export function unitBreaker(clock: Clock, random: () => number, budget: ProbeBudget) {
  let failures = 0;
  let down: { readonly reason: string; readonly probeAt: number } | undefined;
  let probing = false;
  const backOff = new BackOff({ minMs: probeMinMs, maxMs: probeMaxMs, random });

  function endProbe(ms: number): boolean {
    const probed = probing;
    probing = false;
    if (probed) budget.giveBack(ms);
    return probed;
  }

  return {
    /** Why the unit counts as down. Undefined if it does not. */
    get down(): string | undefined {
      return down?.reason;
    },
    /** Whether the unit is down, or one failure away. Then request the value most likely answered. */
    get isDoubtful(): boolean {
      return down !== undefined || failures >= failureLimit - 1;
    },
    /** Whether a request may be sent now. While the unit is down, only an occasional probe may. */
    admit(): boolean {
      if (!down) return true;
      if (probing || clock.monotonic() < down.probeAt || !budget.take()) return false;
      probing = true;
      return true;
    },
    /** Whether the next request may have a short time-out, as the last one failed. Not for every fourth probe. */
    get brief(): boolean {
      return failures > 0 && backOff.failures % 4 !== 3;
    },
    succeeded(): void {
      endProbe(0);
      failures = 0;
      down = undefined;
      backOff.reset();
    },
    /** Records a failed request that took `ms`. True if the unit goes down now. */
    failed(reason: string, ms: number): boolean {
      const probed = endProbe(ms);
      if (!probed && ++failures < failureLimit) return false;
      const goesDown = !down;
      down = { reason, probeAt: clock.monotonic() + backOff.next() };
      return goesDown;
    },
    /** Ends a request that was aborted, or whose result says nothing about the unit. */
    cancelled(): void {
      endProbe(0);
    },
  };
}

// Grants the connection to one caller at a time: round-robin over units, first come first served within a unit.

/** A fair mutex whose waiters can abort. A unit with many requests gets no more turns than others. */
export function fairMutex() {
  let taken = false;
  const turn: Disposable = { [Symbol.dispose]: () => next() };
  /** Waiting callers by unit; the first unit is next. No set is empty. */
  const waiting = new Map<number, Set<() => void>>();

  function next(): void {
    taken = false;
    const [next] = waiting;
    if (!next) return;
    const [unit, ofUnit] = next;
    const [begin] = ofUnit;
    // A unit with more requests moves to the end of the round.
    waiting.delete(unit);
    if (ofUnit.size > 1) waiting.set(unit, ofUnit);
    if (!begin) return;
    ofUnit.delete(begin);
    begin();
  }

  return {
    get waiting(): number {
      return waiting.values().reduce((sum, { size }) => sum + size, 0);
    },
    /** Resolves on the caller's turn, which lasts until the result is disposed. Rejects with `signal.reason`. */
    take(unit: number, signal: AbortSignal): Promise<Disposable> {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (!taken) {
        taken = true;
        return Promise.resolve(turn);
      }
      return new Promise((resolve, reject) => {
        const abort = () => {
          const ofUnit = waiting.get(unit);
          ofUnit?.delete(begin);
          if (ofUnit?.size === 0) waiting.delete(unit);
          reject(signal.reason);
        };
        const begin = () => {
          signal.removeEventListener("abort", abort);
          taken = true;
          resolve(turn);
        };
        signal.addEventListener("abort", abort, { once: true });
        const ofUnit = waiting.get(unit);
        if (ofUnit) ofUnit.add(begin);
        else waiting.set(unit, new Set([begin]));
      });
    },
  };
}
