// Resource usage and hardening of the process.
import type { Clock, MetricDeclaration } from "../../core/runtime.ts";
import { hasCodeFromText } from "../../lib/text/code-from-text.ts";
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

/** `cpuPercent`: of one core, since the last call. */
export function processUsage(clock: Clock) {
  let before = { cpu: process.cpuUsage(), ms: clock.monotonic() };
  return () => {
    const now = { cpu: process.cpuUsage(), ms: clock.monotonic() };
    const usedMs = (now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system) / 1_000;
    const cpuPercent = (100 * usedMs) / Math.max(1, now.ms - before.ms);
    before = now;
    return { memoryBytes: process.memoryUsage.rss(), cpuPercent };
  };
}

/** The actual hardening of the running process, not the intended one. */
export function processSecurity() {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return {
    root: process.getuid?.() === 0,
    // SIGUSR1 can start the debugger, which opens a port.
    debuggerSignal: !flags.includes("--disable-sigusr1"),
    codeFromText: hasCodeFromText(),
    // Input can reach the prototype of objects through `__proto__`.
    proto: Object.hasOwn(Object.prototype, "__proto__"),
    node: process.version,
  };
}

/** Heap growth between collections in per cent. V8 would let small heaps quadruple: 55 MB more at 10,000 messages/s. */
const garbagePercent = 40;

/** V8 keeps 13 MB to optimise undici's WebAssembly parser, without a measurable gain for a 9 MiB request. */
const unoptimisedParser = ["--no-wasm-tier-up", "--no-wasm-dynamic-tiering"] as const;
const flagsOfStart = ["--heap-growing-percent=0", "--wasm-tier-up", "--wasm-dynamic-tiering"] as const;

/**
 * Applies to all threads of the process. Call before the first request; repeated calls are harmless. Node compiles each of
 * its own modules that is first loaded afterwards, because it has compiled them in advance for other flags.
 */
export function boundGarbage(): void {
  setFlags([`--heap-growing-percent=${garbagePercent}`, ...unoptimisedParser]);
}

/** Calls `action` with the flags of before `boundGarbage`, for which code of the next start must be compiled. */
export function withFlagsOfStart(action: () => void): void {
  setFlags(flagsOfStart);
  action();
  boundGarbage();
}

function setFlags(flags: readonly string[]): void {
  // An ES module import would evaluate all exports of the module.
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  for (const flag of flags) setFlagsFromString(flag);
}

/**
 * Returns unused memory to the system. Of 233 MB after a file of 100,000 tags, 174 MB stay, 219 MB without it. Blocks
 * for 0.1 s of CPU time with 26 MB in use, 0.4 s with 77 MB.
 */
export function releaseMemory(): void {
  process.getBuiltinModule("node:v8").setFlagsFromString("--expose-gc");
  // The flag takes effect in contexts that are made after it.
  const collect: typeof globalThis.gc = process.getBuiltinModule("node:vm").runInNewContext("gc");
  collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
}
