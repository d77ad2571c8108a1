// Traffic statistics by method, so that tests and operators can verify a client's request rate.
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Registry from "prom-client/lib/registry.js";

export interface MethodTraffic {
  readonly requests: number;
  /** Bytes of request bodies as JSON. */
  readonly bytes: number;
  /** Shortest time between two starts in milliseconds; infinite with fewer than two. */
  readonly smallestSpacingMs: number;
  /** The most starts in any 1.000 s. */
  readonly maxStartsPerSecond: number;
}

/** A body arrives at most this long after its headers, so older starts have no new neighbours. */
const keepMs = 60_000;

export class Traffic {
  readonly #counters = new Map<string, MethodTraffic>();
  /** Starts of each method in ascending order, at least those of the last `keepMs`. */
  readonly #starts = new Map<string, number[]>();

  /** `start`: when the headers were read, in monotonic milliseconds. */
  record(method: string, start: number, bytes: number): void {
    const starts = this.#starts.get(method) ?? [];
    // A large request completes after a small one that started later.
    const at = starts.findLastIndex((other) => other <= start) + 1;
    starts.splice(at, 0, start);
    const before = start - (starts[at - 1] ?? Number.NEGATIVE_INFINITY);
    const after = (starts[at + 1] ?? Number.POSITIVE_INFINITY) - start;
    const known = this.#counters.get(method);
    this.#counters.set(method, {
      requests: (known?.requests ?? 0) + 1,
      bytes: (known?.bytes ?? 0) + bytes,
      smallestSpacingMs: Math.min(known?.smallestSpacingMs ?? Number.POSITIVE_INFINITY, before, after),
      maxStartsPerSecond: Math.max(known?.maxStartsPerSecond ?? 0, densest(starts, at)),
    });
    const tooMany = starts.length >= 1_024 && starts[starts.length >>> 1]! < start - keepMs;
    this.#starts.set(method, tooMany ? starts.filter((other) => other >= start - keepMs) : starts);
  }

  /** By canonical method name. */
  counters(): ReadonlyMap<string, MethodTraffic> {
    return this.#counters;
  }
}

/** The most starts in any second that includes the one at index `at`. */
function densest(starts: readonly number[], at: number): number {
  let most = 0;
  let end = starts.length;
  for (let first = at; first >= 0 && starts[at]! - starts[first]! < 1_000; first--) {
    while (starts[end - 1]! - starts[first]! >= 1_000) end--;
    most = Math.max(most, end - first);
  }
  return most;
}

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

/** In the Prometheus text format. */
export function metricsText(counters: ReadonlyMap<string, MethodTraffic>): Promise<string> {
  const registry = new Registry();
  const options = (name: string, help: string) => ({
    name: `tagferry_service_${name}`,
    help,
    labelNames: ["method"],
    registers: [registry],
  });
  const requests = new Counter(options("requests_total", "Requests by method."));
  const bytes = new Counter(options("request_bytes_total", "Bytes of requests, as JSON."));
  const spacing = new Gauge(options("smallest_spacing_seconds", "Time between the two starts that were closest."));
  const starts = new Gauge(options("max_starts_per_second", "The most starts in any 1.000 s."));
  for (const [method, traffic] of counters) {
    requests.inc({ method }, traffic.requests);
    bytes.inc({ method }, traffic.bytes);
    spacing.set({ method }, traffic.smallestSpacingMs / 1_000);
    starts.set({ method }, traffic.maxStartsPerSecond);
  }
  return registry.metrics();
}
