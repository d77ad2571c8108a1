// State of one input: the last reading and, for `report`, the last stored and the held point.
import type { EpochMicros, InputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Quality, Reading, TagId } from "../core/source.ts";
import type { InputTimeFault } from "./mapping.ts";
import type { TagRule } from "./options.ts";

export interface InputTag {
  readonly id: TagId;
  readonly rule: Pick<TagRule, "shared" | "sameTime">;
  readonly parts: InputParts;
}

/** What all inputs of a source share. */
export interface InputParts {
  readonly source: string;
  /** Counters and last values of all inputs. */
  readonly numbers: InputNumbers;
  /** Called when another tag is refused the Input ID of `state`. */
  readonly contested: (state: InputState) => void;
}

/** A held value and its time, without a point object, since it may never be stored. */
interface Held {
  value: number;
  time: EpochMicros;
  /** Due time in monotonic milliseconds. */
  dueMs: number;
}

/** Signal metadata and value range from the device. */
interface DeviceDescription {
  readonly signal: PartialSignalMetadata;
  readonly range: { readonly min: number; readonly max: number } | undefined;
}

/** Shared by all inputs without metadata, since there may be many. */
const nothing: PartialSignalMetadata = {};

/** Parameters of report by exception. Tags with equal settings share one object. */
export interface ReportRule {
  /** Milliseconds; undefined: no heartbeat. */
  readonly heartbeat: number | undefined;
  /** Microseconds; 0: no minimum. */
  readonly minIntervalUs: number;
}

export class ReportState {
  readonly of: InputState;
  readonly rule: ReportRule;
  filtered = 0;
  /** In the signal's unit. NaN: a percentage of a range that is still unknown. */
  deadband = 0;
  /** Number of the uninterrupted period in which the value was stored; 0: none. */
  epoch = 0;
  storedValue = 0;
  storedTime = 0;
  /** Monotonic milliseconds. */
  storedMs = 0;
  /** End of the `minInterval` in the time of the readings, in microseconds. No further point before it. */
  windowEnd = 0;
  held: Held | undefined;

  constructor(of: InputState, rule: ReportRule) {
    this.of = of;
    this.rule = rule;
  }
}

/** Array elements per input: value, time, arrival, readings, stored, bad. */
const width = 6;

/** Numbers of all inputs of a source in one array: no allocation per reading, no objects for the garbage collector. */
export class InputNumbers {
  all: Float64Array;
  #used = 0;

  constructor(inputs: number) {
    this.all = new Float64Array(width * Math.max(1, inputs));
  }

  /** Allocates the numbers of another input and returns their index. */
  add(): number {
    const at = this.#used;
    this.#used += width;
    if (this.#used > this.all.length) {
      const before = this.all;
      this.all = new Float64Array(2 * before.length);
      this.all.set(before);
    }
    return at;
  }
}

/** Observes the readings of one input. */
export interface ReadingObserver {
  /** Called for each reading. `map` maps it and changes `state`. */
  observe(state: InputState, reading: Reading, nowMs: number, map: () => void): void;
}

/** Mutable with a constant shape, since every reading uses one. Rare state is in separate objects. */
export class InputState {
  readonly of: InputTag;
  readonly input: InputId;
  /** Address of the last reading. Empty: nothing was read yet. */
  address = "";
  /** The only accepted address. Empty: no usable value was read yet, or the tag is shared. */
  boundTo = "";
  readonly #numbers: InputNumbers;
  /** Index of its numbers in the array; −1 without an Input ID. */
  #at = -1;
  quality: Quality | undefined;
  reason: string | undefined;
  /** Whether the last reading was unusable and reported as such. */
  failing = false;
  /** Undefined: no reading had the device time of its predecessor with another value. */
  repeated: RepeatedTime | undefined;
  roundingLogged = false;

  device: DeviceDescription | undefined;
  /** Merged metadata of configuration and device, and whether the catalog has them. */
  signal: PartialSignalMetadata = nothing;
  described = false;
  /** Words of an enumeration; undefined for other signals. */
  states: ReadonlyMap<string, number> | undefined;

  /** Undefined: each value is stored. */
  report: ReportState | undefined;
  /** Undefined: the page of this input is not open. */
  observer: ReadingObserver | undefined;

  constructor(of: InputTag, input: InputId) {
    this.of = of;
    this.input = input;
    this.#numbers = of.parts.numbers;
  }

  /** Called once the input owns its Input ID. */
  claimed(): void {
    this.#at = this.#numbers.add();
    this.value = Number.NaN;
    this.time = Number.NaN;
  }

  get tag(): TagId {
    return this.of.id;
  }

  /** The last value, stored or not. NaN: none. */
  get value(): number {
    return this.#numbers.all[this.#at]!;
  }
  set value(value: number) {
    this.#numbers.all[this.#at] = value;
  }

  get time(): number {
    return this.#numbers.all[this.#at + 1]!;
  }
  set time(time: number) {
    this.#numbers.all[this.#at + 1] = time;
  }

  /** The last assigned arrival time, in microseconds; 0: none. */
  get arrival(): number {
    return this.#numbers.all[this.#at + 2]!;
  }
  set arrival(time: number) {
    this.#numbers.all[this.#at + 2] = time;
  }

  get readings(): number {
    return this.#numbers.all[this.#at + 3]!;
  }
  set readings(count: number) {
    this.#numbers.all[this.#at + 3] = count;
  }

  get stored(): number {
    return this.#numbers.all[this.#at + 4]!;
  }
  set stored(count: number) {
    this.#numbers.all[this.#at + 4] = count;
  }

  get bad(): number {
    return this.#numbers.all[this.#at + 5]!;
  }
  set bad(count: number) {
    this.#numbers.all[this.#at + 5] = count;
  }
}

const leastReadings = 10;
const leastStandingMs = 60_000;
const mostShare = 0.05;
/** Length of the window for the share. The share covers the current and the previous window. */
const windowReadings = 500;

/**
 * Counts readings of an input that repeat the previous device time with another value. A repeat of time and value is
 * normal: a broker delivers a message again, or a server reports the time of the last change. Historical readings do
 * not count, and arrival times never repeat.
 *
 *   device time   12:00:00  12:00:00  12:00:00  12:00:00 …
 *   value               20        21        21        22        two values replaced their predecessor
 *
 *   stands still    one time for at least 10 such readings and 60 s of arrival, and for more than twice as long as any
 *                   time before it. Hourly totals that carry the start of their hour are therefore not reported.
 *   repeats         at least 10 such readings, and more than 5 % of the last 500 to 1,000. Not with `sameTime: keep`,
 *                   which stores all of them.
 */
export class RepeatedTime {
  /** Repeats of the current device time. */
  #run = 0;
  #runSinceMs = 0;
  /** Length of the longest completed run. */
  #longestMs = 0;
  lastMs = 0;
  #windowStart: number;
  #inWindow = 0;
  #before = 0;
  #beforeReadings = 0;
  standingLogged = false;
  repeatsLogged = false;

  /** `readings`: count so far. The window starts before the first repeated reading and its predecessor. */
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

  /** Ends the run: a reading had another device time. */
  advance(): void {
    if (this.#run === 0) return;
    this.#longestMs = Math.max(this.#longestMs, this.#runMs);
    this.#run = 0;
    this.standingLogged = false;
  }

  /** `readings`: count so far. `keeps`: all values of one time are stored. */
  fault(readings: number, keeps: boolean): Pick<InputTimeFault, "kind" | "repeats" | "readings" | "forMs"> | undefined {
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
