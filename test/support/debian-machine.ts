// A Debian of its own with a real systemd as process 1, in namespaces: what a package does to a machine is seen there.
// Needs root, debootstrap and Debian's packages; has its own loopback and no other network.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface DebianMachine extends AsyncDisposable {
  /** Where its files are seen from outside. */
  readonly root: string;
  /** Runs a command on it; never rejects for its exit status. */
  run(...command: readonly string[]): Promise<Ran>;
}

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  /** What it printed, errors included. */
  readonly output: string;
}

const here = import.meta.dirname;

/** Resolves once systemd answers; takes a minute and a half. */
export async function debianMachine(): Promise<DebianMachine> {
  const home = temporaryFolder();
  const root = home.file("root");
  unpackDebian(root);
  const namespaces = ["--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--net", "--cgroup"];
  const outer = spawn("unshare", [...namespaces, resolve(here, "boot-machine.sh"), root], { stdio: "ignore" });
  const gone = once(outer, "exit");
  const first = await eventually(() => firstChild(outer.pid), 10_000);
  const run = (...command: readonly string[]) => ran("nsenter", ["-t", first, "-a", "--", ...command]);
  const machine: DebianMachine = {
    root,
    run,
    async [Symbol.asyncDispose]() {
      outer.kill("SIGKILL");
      await gone;
      home[Symbol.dispose]();
    },
  };
  try {
    await eventually(async () => {
      const { output } = await run("systemctl", "is-system-running");
      return /^(running|degraded)/.test(output);
    }, 60_000);
  } catch (error) {
    await machine[Symbol.asyncDispose]();
    throw error;
  }
  return machine;
}

/**
 * Fills the folder `root` with a Debian that has systemd and little else. What debootstrap made is kept in `.cache` for
 * the next call: it takes a minute and more.
 */
export function unpackDebian(root: string): void {
  const cache = resolve(here, "../../.cache");
  const kept = join(cache, "debian-bookworm.tar");
  mkdirSync(root, { recursive: true });
  if (!existsSync(kept)) {
    const include = "--include=systemd,systemd-sysv,dbus,iproute2";
    execFileSync("debootstrap", ["--variant=minbase", include, "bookworm", root], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    mkdirSync(cache, { recursive: true });
    // Under a name of its own until it is whole.
    const part = `${kept}.${process.pid}`;
    execFileSync("tar", ["-C", root, "-cf", part, "."]);
    renameSync(part, kept);
    return;
  }
  execFileSync("tar", ["-C", root, "-xpf", kept]);
}

function firstChild(pid: number | undefined): string | undefined {
  return readFileSync(join("/proc", String(pid), "task", String(pid), "children"), "utf8").split(" ")[0] || undefined;
}

function ran(file: string, args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(file, [...args], { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      const status = typeof error?.code === "number" ? error.code : error ? -1 : 0;
      resolve({ status, stdout, output: stdout + stderr });
    });
  });
}
