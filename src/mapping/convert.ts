// Conversion of a device value to a finite number in the signal's unit, or a failure with its reason.
import type { MetricDeclaration, Metrics } from "../core/runtime.ts";
import { parseDecimal } from "../lib/values/decimal-text.ts";
import { Linear } from "../lib/values/linear.ts";
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
