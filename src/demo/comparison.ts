// Compares delivered with stored values as distinct (input, value) pairs. Pure.
import type { EpochMicros, InputId } from "../core/point.ts";

export type DeliveredValues = ReadonlyMap<InputId, ReadonlySet<number>>;

/** Records every delivered value. Its size depends on the duration of the demo: about 50 bytes a value. */
export class DeliveredRecord {
  readonly #values = new Map<InputId, Set<number>>();
  #count = 0;

  /** Number of distinct (input, value) pairs so far. */
  get count(): number {
    return this.#count;
  }

  add(input: InputId, value: number): void {
    const values = this.#values.get(input) ?? new Set();
    this.#values.set(input, values);
    if (!values.has(value)) this.#count++;
    values.add(value);
  }

  get values(): DeliveredValues {
    return this.#values;
  }
}

/** Stored values by Input ID, with their times. */
export type Stored = ReadonlyMap<InputId, ReadonlyMap<number, readonly EpochMicros[]>>;

export interface Comparison {
  /** Distinct pairs that the devices delivered. */
  readonly read: number;
  readonly stored: number;
  readonly missing: number;
  /** Distinct pairs that are stored under several times. */
  readonly twice: number;
  /** Distinct stored pairs that no device delivered. */
  readonly foreign: number;
  readonly exact: boolean;
  /** The first mismatches of each kind as text, at most ten in total. */
  readonly examples: readonly string[];
}

const maxExamples = 10;

export function compare(delivered: DeliveredValues, stored: Stored): Comparison {
  let read = 0;
  let missing = 0;
  let twice = 0;
  let foreign = 0;
  const examples: string[] = [];
  const example = (text: string) => {
    if (examples.length < maxExamples) examples.push(text);
  };
  for (const [input, values] of delivered) {
    const found = stored.get(input);
    for (const value of values) {
      read++;
      if (found?.has(value)) continue;
      missing++;
      example(`${input}: ${value} is missing`);
    }
  }
  for (const [input, values] of stored) {
    for (const [value, times] of values) {
      if (times.length > 1) {
        twice++;
        example(
          `${input}: ${value} is stored at ${times.map((time) => new Date(time / 1_000).toISOString()).join(" and ")}`,
        );
      }
      if (delivered.get(input)?.has(value)) continue;
      foreign++;
      example(`${input}: ${value} was never delivered by a device`);
    }
  }
  const exact = missing === 0 && twice === 0 && foreign === 0;
  return { read, stored: read - missing, missing, twice, foreign, exact, examples };
}

/** Measurements of the service during a demo. */
interface ServiceSaw {
  readonly requests: number;
  /** Most starts of one method in any 1.000 s. */
  readonly maxRate: number;
  readonly outageMs: number;
}

/** The last line of a demo. Scripts parse it, so its format is fixed. */
export function lastLine(comparison: Comparison, saw: ServiceSaw): string {
  const { read, stored, missing } = comparison;
  const outage = Number((saw.outageMs / 1_000).toFixed(1));
  return `demo: read ${read}, stored ${stored}, missing ${missing}, requests ${saw.requests}, max rate ${saw.maxRate.toFixed(2)}/s, outage ${outage} s`;
}
