// What clients have sent, in the text format of Prometheus.
import type { MethodTraffic } from "./traffic.ts";

const figures: readonly (readonly [
  name: string,
  type: "counter" | "gauge",
  help: string,
  read: (traffic: MethodTraffic) => number,
])[] = [
  ["tagferry_service_requests_total", "counter", "Requests by method.", ({ requests }) => requests],
  ["tagferry_service_request_bytes_total", "counter", "Bytes of requests, as JSON.", ({ bytes }) => bytes],
  [
    "tagferry_service_smallest_spacing_seconds",
    "gauge",
    "Time between the two starts that were closest.",
    ({ smallestSpacingMs }) => smallestSpacingMs / 1_000,
  ],
  [
    "tagferry_service_max_starts_per_second",
    "gauge",
    "The most starts in any 1.000 s.",
    ({ maxStartsPerSecond }) => maxStartsPerSecond,
  ],
];

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

export function metricsText(counters: ReadonlyMap<string, MethodTraffic>): string {
  return figures
    .map(([name, type, help, read]) => {
      const samples = [...counters].map(([method, traffic]) => {
        const value = read(traffic);
        return `${name}{method="${method}"} ${value === Number.POSITIVE_INFINITY ? "+Inf" : value}\n`;
      });
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.join("")}`;
    })
    .join("");
}
