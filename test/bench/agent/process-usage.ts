// The CPU time and resident memory of another process, from /proc.
import { readFileSync } from "node:fs";

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100;

/** Seconds of CPU time of all threads. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export interface Memory {
  /** Megabytes (10^6 bytes). */
  readonly rss: number;
  readonly peak: number;
}

export function memory(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN);
  return { rss: (kibibytes("VmRSS") * 1_024) / 1e6, peak: (kibibytes("VmHWM") * 1_024) / 1e6 };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
