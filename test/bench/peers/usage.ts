// The cost of a process and all its children, from /proc, and the bytes written to the block device of a folder.
import { readFileSync, statSync } from "node:fs";

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100;
const sectorBytes = 512;

export interface TreeUsage {
  /** Seconds of CPU time in user mode, and in user and kernel mode. Includes children that have ended. */
  readonly userSeconds: number;
  readonly cpuSeconds: number;
  /** Resident megabytes (10^6 bytes), current and highest, summed over the processes. */
  readonly residentMB: number;
  readonly mostMB: number;
}

export function treeUsage(pid: number): TreeUsage {
  const each = tree(pid).map((process) => {
    const stat = readFileSync(`/proc/${process}/stat`, "utf8").split(") ")[1]?.split(" ").map(Number) ?? [];
    const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = stat.slice(11);
    const status = readFileSync(`/proc/${process}/status`, "utf8");
    const megabytes = (name: string) => (Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1_024) / 1e6;
    return {
      userSeconds: (user + childrenUser) / ticksPerSecond,
      cpuSeconds: (user + system + childrenUser + childrenSystem) / ticksPerSecond,
      residentMB: megabytes("VmRSS"),
      mostMB: megabytes("VmHWM"),
    };
  });
  const sum = (of: keyof TreeUsage) => each.reduce((all, one) => all + one[of], 0);
  return {
    userSeconds: sum("userSeconds"),
    cpuSeconds: sum("cpuSeconds"),
    residentMB: sum("residentMB"),
    mostMB: sum("mostMB"),
  };
}

function tree(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(tree)];
}

/** Bytes written to the device of this folder since the system started. */
export function deviceBytesWritten(folder: string): number {
  const device = statSync(folder).dev;
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  const fields = readFileSync(`/sys/dev/block/${major}:${minor}/stat`, "utf8").trim().split(/\s+/);
  return Number(fields[6]) * sectorBytes;
}
