// From what a device gave to a finite number in the signal's unit, or the reason why it is none. Pure.
import { Linear } from "./linear.ts";
import type { TagRule } from "./options.ts";

/** Why a reading gives no point; a label of a counter, so the list is closed. */
export const failures = [
  "noValue",
  "badQuality",
  "notFinite",
  "notNumber",
  "unknownWord",
  "notState",
  "outOfRange",
  "inputRefused",
  "secondAddress",
] as const;
export type Failure = (typeof failures)[number];

const numeric = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;

/** The rule of a tag, made ready. One serves all inputs of all tags with the same rule. */
export class Converter {
  readonly #words: ReadonlyMap<string, number> | undefined;
  readonly #linear: Linear;
  readonly #min: number;
  readonly #max: number;
  /** Set by `convert` where a value was rounded to the nearest double. */
  rounded = false;
  /** Set by `convert` where it gives NaN. */
  failure: Failure | undefined;
  reason = "";

  constructor({ values, scale, offset, valid }: Pick<TagRule, "values" | "scale" | "offset" | "valid">) {
    this.#words = values && new Map(Object.entries(values));
    this.#linear = new Linear(scale, offset);
    this.#min = valid?.min ?? Number.NEGATIVE_INFINITY;
    this.#max = valid?.max ?? Number.POSITIVE_INFINITY;
  }

  /**
   * A finite number, or NaN: then `failure` and `reason` say why. `states` are the words of an enumeration and their
   * numbers, undefined where the signal is none. One result at a time, so that nothing is allocated for a reading.
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
    // Adding 0 makes 0 of −0.
    return number + 0;
  }

  #number(value: number | bigint | boolean | string, states: ReadonlyMap<string, number> | undefined): number {
    const word = this.#words?.get(String(value));
    if (word !== undefined) return word;
    if (typeof value === "number") return this.#linear.apply(value);
    if (typeof value === "boolean") return this.#linear.apply(value ? 1 : 0);
    if (typeof value === "string") return this.#text(value, states);
    const { value: number, exact } = this.#linear.applyInteger(value);
    this.rounded = !exact;
    return number;
  }

  #text(value: string, states: ReadonlyMap<string, number> | undefined): number {
    const state = states?.get(value);
    if (state !== undefined) return state;
    const text = value.trim();
    if (numeric.test(text)) return this.#linear.apply(Number(text));
    const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 37)}...` : text);
    if (this.#words || states)
      return this.#fail("unknownWord", `the word ${shown} is not in ${this.#words ? "values" : "enumValues"}`);
    return this.#fail("notNumber", `the text ${shown} is no number; values makes numbers of words`);
  }

  #fail(failure: Failure, reason: string): number {
    this.failure = failure;
    this.reason = reason;
    return Number.NaN;
  }
}
