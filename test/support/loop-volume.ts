// A file system of its own in a file, whose power can be cut: everything that was not synced is gone then. Needs root,
// loop devices, the tools of the file system, and `xfs_io`, whose shutdown command works on ext4 as well.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

export type FileSystem = "ext4" | "xfs";

export interface LoopVolume extends Disposable {
  /** Where it is mounted. */
  readonly path: string;
  /** Cuts the power some time from now, while the caller goes on. */
  cutSoon(ms: number): ChildProcess;
  /** Throws once the power is cut. */
  throwIfCut(): void;
  /** Gives power again: mounts it as it would be after a restart. */
  restart(): void;
}

export const canCutPower =
  process.getuid?.() === 0 && hasTool("xfs_io", "-V") && hasTool("mkfs.xfs", "-V") && hasTool("mkfs.ext4", "-V");

function hasTool(name: string, ...args: string[]): boolean {
  try {
    execFileSync(name, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export function loopVolume(type: FileSystem, bytes = 400 * 2 ** 20): LoopVolume {
  const home = temporaryFolder();
  const image = home.file("image");
  const path = home.file("mounted");
  writeFileSync(image, "");
  truncateSync(image, bytes);
  mkdirSync(path);
  const run = (name: string, ...args: string[]) => execFileSync(name, args, { stdio: "pipe" });
  // Tables are written at once: later they would count as the writes of whoever is measured.
  if (type === "ext4") run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image);
  else run("mkfs.xfs", "-q", "-f", image);
  const mount = () => run("mount", "-o", "loop", image, path);
  // Whoever looks at all mounts of the machine at this moment keeps it busy for a moment. A file left open keeps it for good.
  const untilFree = 'for i in $(seq 100); do umount "$0" 2>/dev/null && exit; sleep 0.05; done; umount "$0"';
  const unmount = () => run("sh", "-c", untilFree, path);
  mount();
  const probe = join(path, "probe");
  writeFileSync(probe, "", { flush: true });
  execFileSync("sync", ["-f", path]);
  return {
    path,
    cutSoon(ms) {
      const script = `sleep ${(ms / 1_000).toFixed(3)}; exec xfs_io -x -c shutdown "$0"`;
      return spawn("sh", ["-c", script, path], { stdio: "ignore" });
    },
    throwIfCut: () => closeSync(openSync(probe, "r+")),
    restart() {
      unmount();
      mount();
    },
    [Symbol.dispose]() {
      unmount();
      home[Symbol.dispose]();
    },
  };
}
