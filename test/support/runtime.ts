// A `Runtime` for tests: a clock that stands still until it is advanced, and logs and counters that can be read.
import type { EpochMicros } from "../../src/core/point.ts";
import { epochMicros } from "../../src/core/point.ts";
import type { Clock, LogFields, Logger, MetricDeclaration, Metrics, Runtime } from "../../src/core/runtime.ts";
import { systemClock } from "../../src/lib/time/clock.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: LogFields;
  readonly message: string;
}

export interface TestRuntime extends Runtime {
  readonly lines: readonly LogLine[];
  /** The sum of a counter, or the last value of a gauge, over all labels or the given ones. */
  metric(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Real time by default. Pass a `ManualClock` where time matters. With `seed`, `random` is reproducible. */
export function testRuntime(options: { clock?: Clock; seed?: number } = {}): TestRuntime {
  const lines: LogLine[] = [];
  const values = new Map<string, Map<string, number>>();
  const log = (bound: LogFields): Logger => {
    const write = (level: LogLine["level"]) => (fields: LogFields, message: string) => {
      lines.push({ level, fields: { ...bound, ...fields }, message });
    };
    return {
      debug: write("debug"),
      info: write("info"),
      warn: write("warn"),
      error: write("error"),
      child: (fields) => log({ ...bound, ...fields }),
    };
  };
  const update = (
    declaration: MetricDeclaration,
    labels: Readonly<Record<string, string>> | undefined,
    change: (before: number) => number,
  ) => {
    const series = values.get(declaration.name) ?? new Map<string, number>();
    values.set(declaration.name, series);
    const key = JSON.stringify(Object.entries(labels ?? {}));
    series.set(key, change(series.get(key) ?? 0));
  };
  const metrics: Metrics = {
    counter: (declaration) => ({ add: (n, labels) => update(declaration, labels, (before) => before + n) }),
    gauge: (declaration) => ({
      set: (value, labels) => update(declaration, labels, () => value),
      setOnly(value, labels) {
        values.delete(declaration.name);
        update(declaration, labels, () => value);
      },
    }),
    histogram: (declaration) => ({ observe: (_value, labels) => update(declaration, labels, (before) => before + 1) }),
  };
  return {
    clock: options.clock ?? systemClock(),
    random: seeded(options.seed ?? 1),
    log: log({}),
    metrics,
    lines,
    metric(name, labels) {
      let sum = 0;
      for (const [key, value] of values.get(name) ?? []) {
        const has = new Map(JSON.parse(key) as [string, string][]);
        if (Object.entries(labels ?? {}).every(([label, wanted]) => has.get(label) === wanted)) sum += value;
      }
      return sum;
    },
  };
}

/** Reproducible numbers from 0 to below 1 for a seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Stands still until `advance`. Sleepers wake in the order of their times. */
export class ManualClock implements Clock {
  #wallMicros: number;
  #monotonicMs = 0;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  constructor(start = "2026-01-01T00:00:00Z") {
    this.#wallMicros = Date.parse(start) * 1_000;
  }

  now(): EpochMicros {
    return epochMicros(this.#wallMicros);
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  /** The number of sleepers. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const sleeper = { at: this.#monotonicMs + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal.addEventListener(
        "abort",
        () => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
          reject(signal.reason);
        },
        { once: true },
      );
    });
  }

  /** Advances time by `ms` milliseconds, and wakes each sleeper in turn. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonicMs + ms;
    for (;;) {
      await settled();
      const next = this.#sleepers.toSorted((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      this.#move(Math.max(next.at, this.#monotonicMs));
      next.wake();
    }
    this.#move(end);
    await settled();
  }

  /** Advances time by `ms` milliseconds while nothing runs, as when the process is suspended. */
  async suspend(ms: number): Promise<void> {
    this.#move(this.#monotonicMs + ms);
    await this.advance(0);
  }

  /** Moves only the wall clock, as an operator or NTP would. */
  stepWall(ms: number): void {
    this.#wallMicros += ms * 1_000;
  }

  #move(to: number): void {
    this.#wallMicros += (to - this.#monotonicMs) * 1_000;
    this.#monotonicMs = to;
  }
}

/** Lets everything that is ready run, without advancing time. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
