// Environment that long-lived parts receive instead of globals: time, random numbers, log and metrics.
import type { EpochMicros } from "./point.ts";

export interface Clock {
  /** Wall time. Only for timestamps, since it may jump. */
  now(): EpochMicros;
  /**
   * Microseconds to add to `time` so that it differs from the times that this clock gave before it was set back.
   * Undefined: always 0.
   */
  extraMicros?(time: number): number;
  /** Milliseconds since a start that all processes of the machine share. Never decreases. For intervals. */
  monotonic(): number;
  /**
   * Resolves after at least `ms` milliseconds, or rejects with `signal.reason`. With `gridMs` it resolves at the
   * nearest multiple of `gridMs` instead. Waits then end together and wake the processor once.
   */
  sleep(ms: number, signal: AbortSignal, gridMs?: number): Promise<void>;
}

/** Grid for checks that recur at intervals of 1 s or more and tolerate a shift of half a second. */
export const checkGridMs = 1_000;

/** Takes fields and a constant lower-case message. `warn`: failure without loss. `error`: loss or action required. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A log that adds these fields to every line. */
  child(fields: LogFields): Logger;
}
export type LogFields = Readonly<Record<string, unknown>>;

/** Declared once, next to the code that counts. Name: `<part>_<what>_<unit>_total`, without the prefix `tagferry_`. */
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
  /** Sets the value for these labels, and removes those for all others. */
  setOnly(value: number, labels: Labels<Label>): void;
}
export interface Histogram<Label extends string> {
  observe(value: number, labels?: Labels<Label>): void;
}

/** Declaring the same metric again returns the same object. */
export interface Metrics {
  counter<Label extends string>(declaration: MetricDeclaration<Label>): Counter<Label>;
  gauge<Label extends string>(declaration: MetricDeclaration<Label>): Gauge<Label>;
  histogram<Label extends string>(declaration: HistogramDeclaration<Label>): Histogram<Label>;
}

export interface Runtime {
  readonly clock: Clock;
  /** Returns a number from 0 to less than 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
}
