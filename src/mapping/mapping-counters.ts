// Counts readings that gave no point while a delivery is mapped, and adds the sums to the metrics once at its end.
import type { MetricDeclaration, Metrics } from "../core/runtime.ts";
import { type Failure, failures } from "./convert.ts";

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

const noFailures: Readonly<Record<Failure, number>> = {
  noValue: 0,
  badQuality: 0,
  notFinite: 0,
  notNumber: 0,
  unknownWord: 0,
  notState: 0,
  outOfRange: 0,
  inputRefused: 0,
  secondAddress: 0,
};

export class MappingCounters {
  readonly #source: string;
  readonly #counters;
  readonly failed: Record<Failure, number> = { ...noFailures };
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

  /** Hands over what has gathered. */
  add(): void {
    const source = this.#source;
    if (this.filtered > 0) this.#counters.filtered.add(this.filtered, { source });
    if (this.rounded > 0) this.#counters.rounded.add(this.rounded, { source });
    this.filtered = 0;
    this.rounded = 0;
    for (const reason of failures) {
      if (this.failed[reason] > 0) this.#counters.dropped.add(this.failed[reason], { source, reason });
      this.failed[reason] = 0;
    }
  }
}
