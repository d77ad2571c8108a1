// What clients have sent, in the text format of Prometheus.
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Registry from "prom-client/lib/registry.js";
import type { MethodTraffic } from "./traffic.ts";

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

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
