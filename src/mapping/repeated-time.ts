// Counts how often readings of one input repeat the device time of the one before.
//
//   device time   12:00:00  12:00:00  12:00:00  12:00:00 …
//   value               20        21        21        22        two values replaced their predecessor
//
// A reading counts when it has the device time of the one before and another value. A repeat of time and value is normal:
// a broker delivers it again, or a server gives the time of the last change. Historical readings are not looked at, and
// times of arrival never repeat.
//
//   stands still    one time for at least 10 such readings and 60 s of arrival, and for more than twice as long as any
//                   time before it: totals that carry the start of their hour repeat a time for an hour, every hour.
//   repeats         at least 10 such readings, and more than 5 % of the last 500 to 1,000. Not with `sameTime: keep`,
//                   which loses none of them.
//
// One comparison a reading; memory only for inputs that had such a reading within the last hour.
import type { TimeFault } from "./mapping.ts";

const leastReadings = 10;
const leastStandingMs = 60_000;
const mostShare = 0.05;
/** Readings after which the share is counted again from zero. The count before is kept as well. */
const windowReadings = 500;

/** How often readings of one input had the device time of their predecessor and another value. */
export class RepeatedTime {
  /** Of the present device time. */
  #run = 0;
  #runSinceMs = 0;
  /** The longest run that ended. */
  #longestMs = 0;
  lastMs = 0;
  #windowStart: number;
  #inWindow = 0;
  #before = 0;
  #beforeReadings = 0;
  /** Which faults were logged. */
  standingLogged = false;
  repeatsLogged = false;

  /** `readings` of the input so far: the first repeated one and the one that it repeats are in the window. */
  constructor(readings: number) {
    this.#windowStart = readings - 2;
  }

  add(readings: number, nowMs: number): void {
    if (this.#run === 0) this.#runSinceMs = nowMs;
    this.#run++;
    this.lastMs = nowMs;
    if (readings - this.#windowStart > windowReadings) {
      this.#before = this.#inWindow;
      this.#beforeReadings = readings - 1 - this.#windowStart;
      this.#windowStart = readings - 1;
      this.#inWindow = 0;
    }
    this.#inWindow++;
  }

  /** A reading with another device time came. */
  advance(): void {
    if (this.#run === 0) return;
    this.#longestMs = Math.max(this.#longestMs, this.#runMs);
    this.#run = 0;
    this.standingLogged = false;
  }

  /** `readings` of the input so far; `keeps`: all values of one time are stored. */
  fault(readings: number, keeps: boolean): Pick<TimeFault, "kind" | "repeats" | "readings" | "forMs"> | undefined {
    const forMs = this.#runMs;
    if (this.#run >= leastReadings && forMs >= leastStandingMs && forMs > 2 * this.#longestMs)
      return { kind: "standing", repeats: this.#run, readings: this.#run + 1, forMs };
    const repeats = this.#before + this.#inWindow;
    const of = this.#beforeReadings + readings - this.#windowStart;
    if (keeps || repeats < leastReadings || repeats <= mostShare * of) return undefined;
    return { kind: "repeats", repeats, readings: of, forMs };
  }

  get #runMs(): number {
    return this.#run === 0 ? 0 : this.lastMs - this.#runSinceMs;
  }
}
