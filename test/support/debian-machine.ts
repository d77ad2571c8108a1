// A Debian system with a real systemd as process 1, in namespaces, for tests of the effects of a package. Needs root,
// debootstrap and Debian's packages. It has its own loopback and no other network.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface DebianMachine extends AsyncDisposable {
  /** The path of its root folder outside of it. */
  readonly root: string;
  /** Runs a command on it. Does not reject for a non-zero exit status. */
  run(...command: readonly string[]): Promise<Ran>;
}

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  /** Standard output and errors. */
  readonly output: string;
}

const here = import.meta.dirname;

/** Resolves once systemd answers, which takes a minute and a half. */
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
 * Fills the folder `root` with a Debian that has systemd and little else. Caches the result of debootstrap in `.cache`,
 * because it takes more than a minute.
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
    // Under a temporary name until it is complete.
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
