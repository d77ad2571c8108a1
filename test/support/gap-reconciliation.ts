// Compares the values that a device held with the service and the gap record. Every value must be in one of them, and
// the record must not report everything as lost. Pure.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import { lowerBound } from "../../src/lib/values/lists.ts";

/** A value that a device held. The values of an input are distinct and ascending. */
export interface Held {
  readonly input: InputId;
  readonly value: number;
  /** Microseconds. */
  readonly at: number;
  /**
   * Whether `at` is the device's timestamp of the value. Otherwise it is the time of sending, which differs from the
   * agent's.
   */
  readonly stamped: boolean;
}

/** Microseconds. */
export type Span = readonly [from: number, to: number];

export interface Reconciliation {
  readonly missing: readonly Held[];
  /** Missing values that the record does not explain either. */
  readonly unexplained: readonly string[];
}

/** The times of values that are in the service or in the gap record. */
export function reconcile(held: readonly Held[], stored: Stored, gaps: readonly Gap[]): Reconciliation {
  const missing = held.filter(({ input, value }) => !stored.get(input)?.has(value));
  const unexplained: string[] = [];
  // By input, because a drill of hours has thousands of missing values and of gaps.
  for (const [input, values] of Map.groupBy(missing, (each) => each.input)) {
    const spans = lostSpans(gaps, input);
    const times = stored.get(input) ?? new Map<number, readonly number[]>();
    const known = Float64Array.from(times.keys()).sort();
    for (const each of values) {
      const [earliest, latest] = each.stamped ? [each.at, each.at] : between(each.value, known, times);
      if (!spans.some(([from, to]) => from <= latest && to >= earliest && from < to)) unexplained.push(labelOf(each));
    }
  }
  return { missing, unexplained };
}

export const labelOf = ({ input, value, at }: Pick<Held, "input" | "value" | "at">) =>
  `${input} ${value} at ${new Date(at / 1_000).toISOString()}`;

/** Periods in which the record reports or allows missing values of this input. */
export function lostSpans(gaps: readonly Gap[], input: InputId): readonly Span[] {
  return gaps.flatMap(({ from, to, intervals, inputs, state, unfilled }) => {
    const concerned = state === "partly" ? (unfilled?.inputs ?? []) : inputs;
    if (state === "filled" || (concerned.length > 0 && !concerned.includes(input))) return [];
    return intervals ?? [[from, to ?? Number.POSITIVE_INFINITY]];
  });
}

/** The total length of the spans outside of `but`, in microseconds. */
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

/**
 * The interval between the nearest stored values before and after. The device notes when it sends a reply, and the
 * agent when it asks. A missing value may therefore lie slightly outside of its row, but its neighbours do not.
 * `known`: the stored values, ascending.
 */
function between(missing: number, known: Float64Array, times: ReadonlyMap<number, readonly number[]>): Span {
  const next = lowerBound(known, missing);
  const timeOf = (i: number) => times.get(known[i] ?? Number.NaN)?.[0];
  return [(timeOf(next - 1) ?? 0) + 1, (timeOf(next) ?? Number.POSITIVE_INFINITY) - 1];
}
