// A unit that does not answer is asked rarely, so that it costs the others nothing.
import type { Clock } from "../../../core/runtime.ts";
import { BackOff } from "../../../lib/back-off.ts";

/** Failures in a row after which a unit counts as down. */
const failureLimit = 3;
const probeMinMs = 5_000;
const probeMaxMs = 60_000;

/** All probes of a link together take at most one part in this many of its time. */
const probeShare = 40;

/** Which unit that is down may be probed next, and when; shared by the breakers of a link. */
export class ProbeBudget {
  readonly #clock: Clock;
  #probing = false;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a probe may go out now; then it has to be given back. */
  take(): boolean {
    if (this.#probing || this.#clock.monotonic() < this.#notBefore) return false;
    this.#probing = true;
    return true;
  }

  /** The probe is over and was of no avail for `ms`. */
  giveBack(ms: number): void {
    this.#probing = false;
    this.#notBefore = this.#clock.monotonic() + ms * (probeShare - 1);
  }
}

/** Of one unit; shared by everything that polls it. */
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

  /** Why the unit is not asked; undefined: it answers, or has not yet failed often enough. */
  get down(): string | undefined {
    return this.#down?.reason;
  }

  /** Whether the unit is down, or goes down with one more failure: then ask for what is answered if anything is. */
  get isDoubtful(): boolean {
    return this.#down !== undefined || this.#failures >= failureLimit - 1;
  }

  /** Whether a request may go to the unit now. While it is down that is one now and then: the probe. */
  admit(): boolean {
    if (!this.#down) return true;
    if (this.#probing || this.#clock.monotonic() < this.#down.probeAt || !this.#budget.take()) return false;
    this.#probing = true;
    return true;
  }

  /**
   * Whether the next request to the unit may be cut short, since the last was of no avail: all but every fourth probe,
   * lest a unit that has become slow is never heard.
   */
  get brief(): boolean {
    return this.#failures > 0 && this.#backOff.failures % 4 !== 3;
  }

  succeeded(): void {
    this.#endProbe(0);
    this.#failures = 0;
    this.#down = undefined;
    this.#backOff.reset();
  }

  /** The request took `ms` and failed. True when the unit goes down by it. */
  failed(reason: string, ms: number): boolean {
    const probed = this.#endProbe(ms);
    if (!probed && ++this.#failures < failureLimit) return false;
    const goesDown = !this.#down;
    this.#down = { reason, probeAt: this.#clock.monotonic() + this.#backOff.next() };
    return goesDown;
  }

  /** The request ended without an answer to count: it was called off. */
  cancelled(): void {
    this.#endProbe(0);
  }

  /** True if there was one. */
  #endProbe(ms: number): boolean {
    const probed = this.#probing;
    this.#probing = false;
    if (probed) this.#budget.giveBack(ms);
    return probed;
  }
}

// Who may use the connection next: one at a time, unit by unit in a round, within a unit in the order they asked.

/**
 * A mutex whose waiters can give up. A unit with many intervals, or one read in many blocks, gets no more of the turns
 * than any other while others wait.
 */
export class Turns {
  #taken = false;
  /** By unit, the one whose turn comes next first. None is empty. */
  readonly #waiting = new Map<number, Set<() => void>>();

  get waiting(): number {
    return this.#waiting.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Resolves when it is the caller's turn, which lasts until the result is disposed. Rejects with `signal.reason`. */
  take(unit: number, signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const abort = () => {
        this.#remove(unit, begin);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", abort);
        this.#taken = true;
        resolve({ [Symbol.dispose]: () => this.#next() });
      };
      if (!this.#taken) {
        begin();
        return;
      }
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
    // To the end of the round, if it has more to ask.
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
