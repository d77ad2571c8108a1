// Resident memory of another process, from /proc.
import { readFileSync } from "node:fs";

/** The current and the highest value in MiB. */
export function residentMegabytes(pid: number): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mebibytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1_024;
  return { now: mebibytes("VmRSS"), most: mebibytes("VmHWM") };
}
