// What a device held against what the service and the gap record have: every value has to be in one of them, and the
// record must not get out of it by calling everything lost. Pure.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Stored } from "../../src/demo/comparison.ts";

/** A value that a device had. Every value of an input is another one, and greater than those before it. */
export interface Held {
  readonly input: InputId;
  readonly value: number;
  /** Microseconds. */
  readonly at: number;
  /** `at` is the time that the device gives with the value; else when it was handed out, which the agent sees differently. */
  readonly stamped: boolean;
}

/** Microseconds. */
export type Span = readonly [from: number, to: number];

export interface Verdict {
  readonly missing: readonly Held[];
  /** Those that the record does not say either. */
  readonly unexplained: readonly string[];
}

/** Of values that are in the service or in the gap record. */
export function verdictOf(held: readonly Held[], stored: Stored, gaps: readonly Gap[]): Verdict {
  const missing = held.filter(({ input, value }) => !stored.get(input)?.has(value));
  return { missing, unexplained: missing.filter((each) => !isExplained(each, stored, gaps)).map(told) };
}

export const told = ({ input, value, at }: Pick<Held, "input" | "value" | "at">) =>
  `${input} ${value} at ${new Date(at / 1_000).toISOString()}`;

/** Times in which the record says that something is missing of this input, or may be. */
export function lostSpans(gaps: readonly Gap[], input: InputId): readonly Span[] {
  return gaps.flatMap(({ from, to, intervals, inputs, state, unfilled }) => {
    const concerned = state === "partly" ? (unfilled?.inputs ?? []) : inputs;
    if (state === "filled" || (concerned.length > 0 && !concerned.includes(input))) return [];
    return intervals ?? [[from, to ?? Number.POSITIVE_INFINITY]];
  });
}

/** Microseconds of all the spans together that are in none of `but`. */
export function lengthOf(spans: readonly Span[], but: readonly Span[] = []): number {
  const edges = [...new Set([...spans, ...but].flat())].toSorted((a, b) => a - b);
  const within = (all: readonly Span[], moment: number) => all.some(([from, to]) => from < moment && moment < to);
  let sum = 0;
  for (const [i, from] of edges.entries()) {
    const to = edges[i + 1] ?? from;
    const middle = to === Number.POSITIVE_INFINITY ? from + 1 : (from + to) / 2;
    if (within(spans, middle) && !within(but, middle)) sum += to - from;
  }
  return sum;
}

function isExplained(held: Held, stored: Stored, gaps: readonly Gap[]): boolean {
  const [earliest, latest] = held.stamped ? [held.at, held.at] : between(held, stored);
  return lostSpans(gaps, held.input).some(([from, to]) => from <= latest && to >= earliest && from < to);
}

/**
 * Within the times of the nearest values before and after that are stored. A device counts a reply where it sends it, and
 * the agent where it asked: the moment of a value that is missing may lie a little outside of the row, its neighbours do not.
 */
function between({ input, value }: Held, stored: Stored): Span {
  let [before, after] = [
    [-1, 0],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ] as [[number, number], [number, number]];
  for (const [other, times] of stored.get(input) ?? []) {
    const time = times[0] ?? 0;
    if (other < value && other > before[0]) before = [other, time];
    if (other > value && other < after[0]) after = [other, time];
  }
  return [before[1] + 1, after[1] - 1];
}
