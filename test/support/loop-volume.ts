// A file system in a file, whose power can be cut: all unsynced data is then lost. Needs root, loop devices, the tools
// of the file system, and `xfs_io`, whose shutdown command also works on ext4.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

export type FileSystem = "ext4" | "xfs";

export interface LoopVolume extends Disposable {
  /** The mount point. */
  readonly path: string;
  /** Cuts the power after `ms`, while the caller continues. */
  cutSoon(ms: number): ChildProcess;
  /** Throws once the power is cut. */
  throwIfCut(): void;
  /** Restores power: mounts the volume as after a restart. */
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
  // Writes the tables at once. Lazily written ones would count as writes of the measured program.
  if (type === "ext4") run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image);
  else run("mkfs.xfs", "-q", "-f", image);
  const mount = () => run("mount", "-o", "loop", image, path);
  // Another program that examines all mounts keeps the volume busy for a moment. An open file keeps it busy
  // permanently.
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
