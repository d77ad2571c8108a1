// The parts of prom-client that are used. Its index loads the cluster module and more: 7 MB that a gateway can use better.
interface PromOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: readonly unknown[];
}
type PromLabels = Readonly<Record<string, string>>;

declare module "prom-client/lib/registry.js" {
  export default class Registry {
    metrics(): Promise<string>;
  }
}
declare module "prom-client/lib/counter.js" {
  export default class Counter {
    constructor(options: PromOptions);
    inc(value: number): void;
    inc(labels: PromLabels, value: number): void;
  }
}
declare module "prom-client/lib/gauge.js" {
  export default class Gauge {
    constructor(options: PromOptions);
    set(value: number): void;
    set(labels: PromLabels, value: number): void;
  }
}
declare module "prom-client/lib/histogram.js" {
  export default class Histogram {
    constructor(options: PromOptions & { readonly buckets: number[] });
    observe(value: number): void;
    observe(labels: PromLabels, value: number): void;
  }
}
