// A circuit breaker: polls a unit that does not answer rarely, so that it does not delay others.
import type { Clock } from "../../../core/runtime.ts";
import { BackOff } from "../../../lib/flow/back-off.ts";

/** Consecutive failures after which a unit counts as down. */
const failureLimit = 3;
const probeMinMs = 5_000;
const probeMaxMs = 60_000;

/** All probes of a link together take at most 1/40 of its time. */
const probeShare = 40;

/** Limits the probes of units that are down; shared by the breakers of a link. */
export class ProbeBudget {
  readonly #clock: Clock;
  #probing = false;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a probe may be sent now. If so, call `giveBack` after it. */
  take(): boolean {
    if (this.#probing || this.#clock.monotonic() < this.#notBefore) return false;
    this.#probing = true;
    return true;
  }

  /** Ends a probe. `ms`: its duration if it failed, else 0. */
  giveBack(ms: number): void {
    this.#probing = false;
    this.#notBefore = this.#clock.monotonic() + ms * (probeShare - 1);
  }
}

/** The breaker of one unit, shared by all its polls. */
export class UnitBreaker {
  readonly #clock: Clock;
  readonly #budget: ProbeBudget;
  readonly #backOff: BackOff;
  #failures = 0;
  #down: { readonly reason: string; readonly probeAt: number } | undefined;
  #probing = false;

  constructor(clock: Clock, random: () => number, budget: ProbeBudget) {
    this.#clock = clock;
    this.#budget = budget;
    this.#backOff = new BackOff({ minMs: probeMinMs, maxMs: probeMaxMs, random });
  }

  /** Why the unit counts as down. Undefined if it does not. */
  get down(): string | undefined {
    return this.#down?.reason;
  }

  /** Whether the unit is down, or one failure away. Then request the value most likely answered. */
  get isDoubtful(): boolean {
    return this.#down !== undefined || this.#failures >= failureLimit - 1;
  }

  /** Whether a request may be sent now. While the unit is down, only an occasional probe may. */
  admit(): boolean {
    if (!this.#down) return true;
    if (this.#probing || this.#clock.monotonic() < this.#down.probeAt || !this.#budget.take()) return false;
    this.#probing = true;
    return true;
  }

  /** Whether the next request may have a short time-out, as the last one failed. Not for every fourth probe. */
  get brief(): boolean {
    return this.#failures > 0 && this.#backOff.failures % 4 !== 3;
  }

  succeeded(): void {
    this.#endProbe(0);
    this.#failures = 0;
    this.#down = undefined;
    this.#backOff.reset();
  }

  /** Records a failed request that took `ms`. True if the unit goes down now. */
  failed(reason: string, ms: number): boolean {
    const probed = this.#endProbe(ms);
    if (!probed && ++this.#failures < failureLimit) return false;
    const goesDown = !this.#down;
    this.#down = { reason, probeAt: this.#clock.monotonic() + this.#backOff.next() };
    return goesDown;
  }

  /** Ends a request that was aborted, without a result. */
  cancelled(): void {
    this.#endProbe(0);
  }

  #endProbe(ms: number): boolean {
    const probed = this.#probing;
    this.#probing = false;
    if (probed) this.#budget.giveBack(ms);
    return probed;
  }
}

// Grants the connection to one caller at a time: round-robin over units, first come first served within a unit.

/** A fair mutex whose waiters can abort. A unit with many requests gets no more turns than others. */
export class FairMutex {
  #taken = false;
  readonly #turn: Disposable = { [Symbol.dispose]: () => this.#next() };
  /** Waiting callers by unit; the first unit is next. No set is empty. */
  readonly #waiting = new Map<number, Set<() => void>>();

  get waiting(): number {
    return this.#waiting.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Resolves on the caller's turn, which lasts until the result is disposed. Rejects with `signal.reason`. */
  take(unit: number, signal: AbortSignal): Promise<Disposable> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (!this.#taken) {
      this.#taken = true;
      return Promise.resolve(this.#turn);
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#remove(unit, begin);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", abort);
        this.#taken = true;
        resolve(this.#turn);
      };
      signal.addEventListener("abort", abort, { once: true });
      const ofUnit = this.#waiting.get(unit);
      if (ofUnit) ofUnit.add(begin);
      else this.#waiting.set(unit, new Set([begin]));
    });
  }

  #next(): void {
    this.#taken = false;
    const [next] = this.#waiting;
    if (!next) return;
    const [unit, ofUnit] = next;
    const [begin] = ofUnit;
    // A unit with more requests moves to the end of the round.
    this.#waiting.delete(unit);
    if (ofUnit.size > 1) this.#waiting.set(unit, ofUnit);
    if (!begin) return;
    ofUnit.delete(begin);
    begin();
  }

  #remove(unit: number, begin: () => void): void {
    const ofUnit = this.#waiting.get(unit);
    ofUnit?.delete(begin);
    if (ofUnit?.size === 0) this.#waiting.delete(unit);
  }
}
