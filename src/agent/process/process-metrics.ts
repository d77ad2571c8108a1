// What the process itself costs, measured when somebody asks.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "./metrics.ts";

const metrics = {
  cpu: { name: "process_cpu_seconds_total", help: "CPU time used by the process, user and system, in seconds" },
  resident: { name: "process_resident_memory_bytes", help: "Resident memory of the process" },
  heap: { name: "process_heap_used_bytes", help: "Memory that JavaScript objects take up" },
  started: { name: "process_start_time_seconds", help: "Start of the process, in seconds since 1970" },
  loop: {
    name: "process_event_loop_utilization_ratio",
    help: "Share of time since the last scrape that the event loop was busy, 0 to 1",
  },
} as const satisfies Record<string, MetricDeclaration>;

export function measureProcess(registry: MetricsRegistry): void {
  const cpu = registry.counter(metrics.cpu);
  const resident = registry.gauge(metrics.resident);
  const heap = registry.gauge(metrics.heap);
  const loop = registry.gauge(metrics.loop);
  registry.gauge(metrics.started).set(performance.timeOrigin / 1_000);
  let used = 0;
  let before = performance.eventLoopUtilization();
  registry.beforeText(() => {
    const { user, system } = process.cpuUsage();
    cpu.add((user + system) / 1e6 - used);
    used = (user + system) / 1e6;
    const { rss, heapUsed } = process.memoryUsage();
    resident.set(rss);
    heap.set(heapUsed);
    const now = performance.eventLoopUtilization();
    loop.set(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  });
}
