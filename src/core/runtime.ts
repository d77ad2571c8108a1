// What long-lived parts receive instead of using globals: time, random numbers, log and metrics.
import type { EpochMicros } from "./point.ts";

export interface Clock {
  /** Wall time. For stamps only: it may jump. */
  now(): EpochMicros;
  /**
   * Added to the times of this clock, after any rounding, where they become those of points: above 0 while the clock
   * gives times once more that it gave before it was set back. Undefined: 0.
   */
  readonly extraMicros?: number;
  /**
   * Milliseconds from an arbitrary start, the same for all processes of the machine, never backwards. For intervals,
   * time-outs and spacing.
   */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds, never before; rejects with `signal.reason`. With `gridMs` it resolves at the multiple
   * of that which is nearest, so that waits end together and the processor wakes once for all of them.
   */
  sleep(ms: number, signal: AbortSignal, gridMs?: number): Promise<void>;
}

/** Grid for checks that recur each second or less often, and that may as well be half a second early or late. */
export const checkGridMs = 1_000;

/** Fields go before a constant message in lower case. `warn`: went wrong, nothing lost. `error`: data lost or a person is needed. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** The same log with these fields on every line. */
  child(fields: LogFields): Logger;
}
export type LogFields = Readonly<Record<string, unknown>>;

/** Declared once, beside the code that counts. Name: `<part>_<what>_<unit>_total`; `tagferry_` is put before it. */
export interface MetricDeclaration<Label extends string = string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly Label[];
}
export interface HistogramDeclaration<Label extends string = string> extends MetricDeclaration<Label> {
  /** Upper bounds of the buckets, ascending. */
  readonly buckets: readonly number[];
}
export type Labels<Label extends string> = Readonly<Record<Label, string>>;
export interface Counter<Label extends string> {
  add(n: number, labels?: Labels<Label>): void;
}
export interface Gauge<Label extends string> {
  set(value: number, labels?: Labels<Label>): void;
}
export interface Histogram<Label extends string> {
  observe(value: number, labels?: Labels<Label>): void;
}

/** The same declaration twice gives the same counter. */
export interface Metrics {
  counter<Label extends string>(declaration: MetricDeclaration<Label>): Counter<Label>;
  gauge<Label extends string>(declaration: MetricDeclaration<Label>): Gauge<Label>;
  histogram<Label extends string>(declaration: HistogramDeclaration<Label>): Histogram<Label>;
}

export interface Runtime {
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
}
