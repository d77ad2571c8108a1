// Conversion of a device value to a finite number in the signal's unit, or a failure with its reason.
//
// Scales and offsets are decimals: digits / 10^places. If the value is also a decimal with few places, all terms become
// integers below 2^53, which doubles represent exactly. A single division by a power of ten then rounds correctly: 0.1
// × 3 is 0.3. Other values (a float32 with noise, a scale of 1/3) use plain arithmetic.
import type { MetricDeclaration, Metrics } from "../core/runtime.ts";
import { parseDecimal } from "../lib/values/decimal-text.ts";
import type { TagRule } from "./options.ts";

/** Why a reading gives no point. The list is closed, since it is a label of a counter. */
export type ReadingFailure =
  | "noValue"
  | "badQuality"
  | "notFinite"
  | "notNumber"
  | "unknownWord"
  | "notState"
  | "outOfRange"
  | "inputRefused"
  | "secondAddress";

/** The prepared conversion rule of a tag. All inputs of all tags with the same rule share it. */
export class Converter {
  readonly #words: ReadonlyMap<string, number> | undefined;
  readonly #linear: Linear;
  readonly #min: number;
  readonly #max: number;
  /** Whether the last `convert` rounded its value to the nearest double. */
  rounded = false;
  /** Why the last `convert` returned NaN. */
  failure: ReadingFailure | undefined;
  reason = "";

  constructor({ values, scale, offset, valid }: Pick<TagRule, "values" | "scale" | "offset" | "valid">) {
    this.#words = values && wordTable(values);
    this.#linear = new Linear(scale, offset);
    this.#min = valid?.min ?? Number.NEGATIVE_INFINITY;
    this.#max = valid?.max ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Returns a finite number, or NaN and sets `failure` and `reason`. `states`: words and numbers of an enumeration;
   * undefined for other signals. The result is kept in fields, so that a reading allocates nothing.
   */
  convert(value: number | bigint | boolean | string, states: ReadonlyMap<string, number> | undefined): number {
    this.rounded = false;
    this.failure = undefined;
    const number = this.#number(value, states);
    if (this.failure !== undefined) return Number.NaN;
    if (!Number.isFinite(number)) return this.#fail("notFinite", `is ${number}, not a finite number`);
    if (states && (!Number.isInteger(number) || number < 0 || number > 9_999))
      return this.#fail("notState", `is ${number}; states are whole numbers from 0 to 9999`);
    if (number < this.#min) return this.#fail("outOfRange", `is ${number}, below valid.min ${this.#min}`);
    if (number > this.#max) return this.#fail("outOfRange", `is ${number}, above valid.max ${this.#max}`);
    // Turns −0 into 0.
    return number + 0;
  }

  #number(value: number | bigint | boolean | string, states: ReadonlyMap<string, number> | undefined): number {
    const word = this.#words?.get(String(value));
    if (word !== undefined) return word;
    if (typeof value === "number") return this.#linear.apply(value);
    if (typeof value === "boolean") return this.#linear.apply(value ? 1 : 0);
    return typeof value === "string" ? this.#text(value, states) : this.#integer(value);
  }

  #integer(value: bigint): number {
    const { value: number, exact } = this.#linear.applyInteger(value);
    this.rounded = !exact;
    return number;
  }

  #text(value: string, states: ReadonlyMap<string, number> | undefined): number {
    const text = value.trim();
    const number = parseDecimal(text);
    const word =
      this.#words?.get(number === undefined ? text : String(number)) ?? states?.get(value) ?? states?.get(text);
    if (word !== undefined) return word;
    if (number !== undefined) return typeof number === "bigint" ? this.#integer(number) : this.#linear.apply(number);
    const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 37)}...` : text);
    if (this.#words || states)
      return this.#fail("unknownWord", `the word ${shown} is not in ${this.#words ? "values" : "enumValues"}`);
    return this.#fail("notNumber", `the text ${shown} is no number; values makes numbers of words`);
  }

  #fail(failure: ReadingFailure, reason: string): number {
    this.failure = failure;
    this.reason = reason;
    return Number.NaN;
  }
}

/** Also has the number or boolean of each key, since decoders read `01`, `1.0` and `True` as such. */
function wordTable(values: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  const written = Object.entries(values);
  const readAs = written.flatMap(([key, number]) => {
    const read = parseDecimal(key) ?? /^(?:true|false)$/i.exec(key)?.[0].toLowerCase();
    return read === undefined ? [] : [[String(read), number] as const];
  });
  return new Map([...readAs, ...written]);
}

/** `digits / 10^places`, both integers, `places` at least 0. */
interface Decimal {
  readonly digits: number;
  readonly places: number;
}

const powers = Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Measured values have fewer decimal places. Further ones are binary rounding noise. */
const mostPlaces = 9;

/** value × scale + offset without binary rounding errors. */
export class Linear {
  readonly #scale: number;
  readonly #offset: number;
  readonly #exactScale: Decimal | undefined;
  readonly #exactOffset: Decimal | undefined;
  readonly #isIdentity: boolean;

  constructor(scale: number, offset: number) {
    this.#scale = scale;
    this.#offset = offset;
    this.#exactScale = decimal(scale);
    this.#exactOffset = decimal(offset);
    this.#isIdentity = scale === 1 && offset === 0;
  }

  apply(value: number): number {
    if (this.#isIdentity) return value;
    const scale = this.#exactScale;
    const offset = this.#exactOffset;
    if (scale && offset) {
      const valuePlaces = placesOf(value);
      const product = Math.round(value * (powers[valuePlaces] ?? 1)) * scale.digits;
      const places = valuePlaces + scale.places;
      const shared = Math.max(places, offset.places);
      const sum =
        product * (powers[shared - places] ?? Number.NaN) +
        offset.digits * (powers[shared - offset.places] ?? Number.NaN);
      const power = powers[shared];
      if (valuePlaces >= 0 && power !== undefined && Number.isSafeInteger(product) && Number.isSafeInteger(sum))
        return sum / power;
    }
    return value * this.#scale + this.#offset;
  }

  /** Exact integer arithmetic with one final rounding, for integers of any size. */
  applyInteger(value: bigint): { readonly value: number; readonly exact: boolean } {
    const scale = this.#exactScale;
    const offset = this.#exactOffset;
    if (!scale || !offset) return { value: Number(value) * this.#scale + this.#offset, exact: isExact(value) };
    const shared = Math.max(scale.places, offset.places);
    const sum =
      value * BigInt(scale.digits) * 10n ** BigInt(shared - scale.places) +
      BigInt(offset.digits) * 10n ** BigInt(shared - offset.places);
    const power = powers[shared];
    if (power !== undefined && Number.isSafeInteger(Number(sum))) return { value: Number(sum) / power, exact: true };
    // Parsing a decimal text rounds once; dividing a rounded number would round twice.
    return { value: Number(`${sum}e-${shared}`), exact: shared === 0 && isExact(sum) };
  }
}

function isExact(value: bigint): boolean {
  const rounded = Number(value);
  return Number.isFinite(rounded) && BigInt(rounded) === value;
}

/** `value` as a decimal. Undefined: its digits exceed the exact range of doubles, or it has too many places. */
function decimal(value: number): Decimal | undefined {
  const [mantissa = "", exponent = "0"] = value.toExponential().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const places = fraction.length - Number(exponent);
  const digits = Number(whole + fraction) * (places < 0 ? 10 ** -places : 1);
  return Number.isSafeInteger(digits) && places < powers.length ? { digits, places: Math.max(0, places) } : undefined;
}

/** Decimal places of `value`, or −1 if it has more than `mostPlaces`. */
function placesOf(value: number): number {
  for (let places = 0; places <= mostPlaces; places++) {
    const power = powers[places] ?? 1;
    if (Math.round(value * power) / power === value) return places;
  }
  return -1;
}

const metrics = {
  filtered: {
    name: "mapping_filtered_readings_total",
    help: "Readings that report by exception did not find worth a point",
    labels: ["source"],
  },
  dropped: {
    name: "mapping_dropped_readings_total",
    help: "Readings that gave no point: no value, bad quality, out of range, no usable Input ID, second address of an Input ID",
    labels: ["source", "reason"],
  },
  rounded: {
    name: "mapping_rounded_values_total",
    help: "Integers beyond 2^53 that were rounded to the nearest double",
    labels: ["source"],
  },
} as const satisfies Record<string, MetricDeclaration>;

/** Counts readings without a point during a delivery, and adds the sums to the metrics at its end. */
export class MappingCounters {
  readonly #source: string;
  readonly #counters;
  readonly #dropped = new Map<ReadingFailure, number>();
  filtered = 0;
  rounded = 0;

  constructor(source: string, registry: Metrics) {
    this.#source = source;
    this.#counters = {
      filtered: registry.counter(metrics.filtered),
      dropped: registry.counter(metrics.dropped),
      rounded: registry.counter(metrics.rounded),
    };
  }

  drop(reason: ReadingFailure, readings = 1): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + readings);
  }

  /** Adds the counts to the metrics and resets them. */
  add(): void {
    const source = this.#source;
    if (this.filtered > 0) this.#counters.filtered.add(this.filtered, { source });
    if (this.rounded > 0) this.#counters.rounded.add(this.rounded, { source });
    for (const [reason, readings] of this.#dropped)
      if (readings > 0) this.#counters.dropped.add(readings, { source, reason });
    this.filtered = 0;
    this.rounded = 0;
    this.#dropped.clear();
  }
}
