// What the benches of this folder share: the machine, the programs by name, and how an interrupt ends them.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { loopVolume } from "../../support/loop-volume.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type Program, tagferry, telegraf } from "./program.ts";
import type { Place } from "./run.ts";
import { checkTelegraf, telegrafProgram } from "./telegraf-program.ts";

/** Disposing it removes its folder. Its signal aborts with the first interrupt; the second one exits at once. */
export function openPlace(): Place & Disposable {
  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      // The first interrupt lets runs clean up.
      if (interrupt.signal.aborted) process.exit(1);
      interrupt.abort(new Error(`interrupted by ${signal}`));
    });
  const shared = temporaryFolder();
  return {
    shared: shared.path,
    hasLoopDevice: hasLoopDevice(),
    signal: interrupt.signal,
    [Symbol.dispose]: () => shared[Symbol.dispose](),
  };
}

export function machine(): string {
  return `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}`;
}

/** The program that `--program` names. `given`: a Telegraf that is there already. */
export async function programOf(text: string, given = process.env["TAGFERRY_TELEGRAF"]): Promise<Program> {
  if (text === "telegraf" || text === "telegraf-service") {
    const path = given === undefined ? await telegrafProgram() : resolve(given);
    await checkTelegraf(path);
    return telegraf(text, path, text === "telegraf" ? "lines" : "service");
  }
  const [name = "", folder = resolve(import.meta.dirname, "../../../dist")] = text.split("=");
  if (!existsSync(join(folder, "main.js"))) throw new Error(`no build of tagferry in ${folder}: npm run build`);
  return tagferry(name, resolve(folder));
}

function hasLoopDevice(): boolean {
  try {
    execFileSync("mkfs.ext4", ["-V"], { stdio: "ignore" });
    loopVolume("ext4", 64 * 2 ** 20)[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}
