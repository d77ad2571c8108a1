// What the process costs at the moment, in memory and in time of a core.
import type { Clock } from "../../core/runtime.ts";

export interface ProcessUsage {
  readonly memoryBytes: number;
  /** Of one core, since the last call. */
  readonly cpuPercent: number;
}

export function processUsage(clock: Clock): () => ProcessUsage {
  let before = { cpu: process.cpuUsage(), ms: clock.monotonic() };
  return () => {
    const now = { cpu: process.cpuUsage(), ms: clock.monotonic() };
    const usedMs = (now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system) / 1_000;
    const cpuPercent = (100 * usedMs) / Math.max(1, now.ms - before.ms);
    before = now;
    return { memoryBytes: process.memoryUsage.rss(), cpuPercent };
  };
}
