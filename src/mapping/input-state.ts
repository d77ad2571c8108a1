// Everything that is remembered of one input: what was read last, and for `report` what was stored last and is held back.
import type { EpochMicros, InputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Quality, TagId } from "../core/source.ts";
import type { InputTimeFault } from "./mapping.ts";

/** A tag as its inputs know it. */
export interface InputTag {
  readonly id: TagId;
  readonly source: string;
  /** Whether the tag has `shared: true`. */
  readonly shared: boolean;
  /** Whether every value of a time is stored (`sameTime: keep`). */
  readonly keepsSameTime: boolean;
  /** Of the inputs of its source. */
  readonly numbers: InputNumbers;
  /** Another tag was refused the Input ID of `state`, which is one of this tag. */
  contested(state: InputState): void;
}

/** A value and its time, kept apart from points so that nothing is allocated for a reading that is not stored. */
interface Held {
  value: number;
  time: EpochMicros;
  /** When it is due, in milliseconds of the monotonic clock. */
  dueMs: number;
}

/** What the device says of a signal, and the range of its value. */
interface DeviceDescription {
  readonly signal: PartialSignalMetadata;
  readonly range: { readonly min: number; readonly max: number } | undefined;
}

/** Shared by all inputs without metadata, because there may be many. */
const nothing: PartialSignalMetadata = {};

/** When a reading is stored as a point. Tags with equal settings share one object. */
export interface ReportRule {
  /** Milliseconds; undefined: no heartbeat. */
  readonly heartbeat: number | undefined;
  /** Microseconds; 0: as many points as there are changes. */
  readonly minIntervalUs: number;
}

/** Of an input whose tag has `report`. */
export class ReportState {
  readonly of: InputState;
  readonly rule: ReportRule;
  filtered = 0;
  /** In the unit of the signal; NaN while the range that it is a share of is unknown. */
  deadband = 0;
  /** Which uninterrupted stretch the stored value belongs to; 0: there is none. */
  stretch = 0;
  storedValue = 0;
  storedTime = 0;
  /** Milliseconds of the monotonic clock. */
  storedMs = 0;
  /** Until when `minInterval` allows no further point, in the time of the readings, microseconds. */
  windowEnd = 0;
  held: Held | undefined;

  constructor(of: InputState, rule: ReportRule) {
    this.of = of;
    this.rule = rule;
  }
}

/** Numbers of one input: value, time, arrival, readings, stored, bad. */
const width = 6;

/** The numbers of the inputs of one source, in one array: a reading allocates nothing, and the garbage collector visits none of them. */
export class InputNumbers {
  all: Float64Array;
  #used = 0;

  constructor(inputs: number) {
    this.all = new Float64Array(width * Math.max(1, inputs));
  }

  /** Where the numbers of another input begin. */
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

/**
 * Mutable on purpose, and always with the same fields: one is touched for every reading. What few inputs have stands in
 * objects of its own, since there may be 100,000 inputs.
 */
export class InputState {
  readonly of: InputTag;
  readonly input: InputId;
  /** Where the values come from; empty while nothing was read. */
  address = "";
  /** The address that feeds this input; others are refused. Empty: no usable value came yet, or the tag is shared. */
  boundTo = "";
  readonly #numbers: InputNumbers;
  /** Where its numbers begin, once it has its Input ID: those that are refused have none. */
  #at = -1;
  quality: Quality | undefined;
  reason: string | undefined;
  /** Whether the last reading was of no use, and that was told. */
  failing = false;
  /** Left out while no reading had the device time of its predecessor and another value. */
  repeated: RepeatedTime | undefined;
  /** A value of this input was rounded and that was said once. */
  roundingTold = false;

  device: DeviceDescription | undefined;
  /** What configuration and device say together, and whether the catalog has it. */
  signal: PartialSignalMetadata = nothing;
  described = false;
  /** Words of an enumeration; undefined where the signal is none. */
  states: ReadonlyMap<string, number> | undefined;

  /** Undefined: each value is stored. */
  report: ReportState | undefined;

  constructor(of: InputTag, input: InputId) {
    this.of = of;
    this.input = input;
    this.#numbers = of.numbers;
  }

  /** The Input ID is its own. */
  claimed(): void {
    this.#at = this.#numbers.add();
    this.value = Number.NaN;
    this.time = Number.NaN;
  }

  get tag(): TagId {
    return this.of.id;
  }

  /** What was read last, stored or not; NaN: nothing. */
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

  /** Last time given to a reading that carries none of its own, microseconds; 0: there was none. */
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
/** Readings after which the share is counted again from zero. The count before is kept as well. */
const windowReadings = 500;

/**
 * Counts how often readings of one input repeat the device time of the one before with another value. A repeat of time and
 * value is normal: a broker delivers it again, or a server gives the time of the last change. Historical readings do not count,
 * and times of arrival never repeat.
 *
 *   device time   12:00:00  12:00:00  12:00:00  12:00:00 …
 *   value               20        21        21        22        two values replaced their predecessor
 *
 *   stands still    one time for at least 10 such readings and 60 s of arrival, and for more than twice as long as any
 *                   time before it: totals that carry the start of their hour repeat a time for an hour, every hour.
 *   repeats         at least 10 such readings, and more than 5 % of the last 500 to 1,000. Not with `sameTime: keep`,
 *                   which loses none of them.
 */
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
