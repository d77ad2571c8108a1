// The program's metrics, kept by prom-client and exported in its text format.
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import type { HistogramDeclaration, Labels, MetricDeclaration, Metrics } from "../../core/runtime.ts";

export interface MetricsRegistry extends Metrics {
  text(): Promise<string>;
  /** The same as `text`, as data. */
  samples(): Promise<readonly MetricSamples[]>;
  /** Registers a callback that updates gauges before each `text`. */
  beforeText(refresh: () => void): void;
}

export interface MetricSamples {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** `metricName`: of a histogram, with `_bucket`, `_sum` or `_count`; a bucket has its upper bound in the label `le`. */
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
    readonly metricName?: string;
  }[];
}

const prefix = "tagferry_";

export function metricsRegistry(): MetricsRegistry {
  const registry = new Registry();
  const known = new Map<string, unknown>();
  const refreshers: (() => void)[] = [];

  function once<T>(name: string, make: () => T): T {
    const before = known.get(name);
    // The name determines the kind, since each metric is declared once in the code.
    if (before !== undefined) return before as T;
    const made = make();
    known.set(name, made);
    return made;
  }
  const shape = (declaration: MetricDeclaration) => ({
    name: prefix + declaration.name,
    help: declaration.help,
    labelNames: [...(declaration.labels ?? [])],
    registers: [registry],
  });

  return {
    counter<Label extends string>(declaration: MetricDeclaration<Label>) {
      return once(declaration.name, () => {
        const counter = new Counter(shape(declaration));
        return { add: (n: number, labels?: Labels<Label>) => (labels ? counter.inc(labels, n) : counter.inc(n)) };
      });
    },
    gauge<Label extends string>(declaration: MetricDeclaration<Label>) {
      return once(declaration.name, () => {
        const gauge = new Gauge(shape(declaration));
        return {
          set: (value: number, labels?: Labels<Label>) => (labels ? gauge.set(labels, value) : gauge.set(value)),
          setOnly(value: number, labels: Labels<Label>) {
            gauge.reset();
            gauge.set(labels, value);
          },
        };
      });
    },
    histogram<Label extends string>(declaration: HistogramDeclaration<Label>) {
      return once(declaration.name, () => {
        const histogram = new Histogram({ ...shape(declaration), buckets: [...declaration.buckets] });
        return {
          observe: (value: number, labels?: Labels<Label>) =>
            labels ? histogram.observe(labels, value) : histogram.observe(value),
        };
      });
    },
    beforeText: (refresh) => refreshers.push(refresh),
    text() {
      for (const refresh of refreshers) refresh();
      return registry.metrics();
    },
    async samples() {
      for (const refresh of refreshers) refresh();
      return (await registry.getMetricsAsJSON()) as unknown as readonly MetricSamples[]; // prom-client's typings leave out labels
    },
  };
}
